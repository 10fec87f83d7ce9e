// Matrix products: mm, bmm, dot, mv and their sums with a third operand.
#include "core/ops/families/matmul.h"

#include "core/ops/families/matmul_composites.h"
#include "core/ops/gradients.h"
#include "core/ops/layout.h"
#include "core/ops/record.h"

namespace partita {

namespace {

void check_dtypes(const TensorMeta& a, const TensorMeta& b) {
  if (a.dtype != b.dtype)
    fail("expected m1 and m2 to have the same dtype, but got: " + std::string(torch_name(a.dtype)) +
         " != " + std::string(torch_name(b.dtype)));
}

std::string shape(const TensorMeta& t) {
  std::string text;
  for (SymExpr s : t.sizes) text += (text.empty() ? "" : "x") + s.str();
  return text;
}

SymList product_sizes(FakeCall& c, std::string_view left, std::string_view right) {
  const TensorMeta &a = c.tensor(left), &b = c.tensor(right);
  if (a.dim() != 2 || b.dim() != 2)
    fail(std::string(left) + " and " + std::string(right) + " must be matrices, got " + std::to_string(a.dim()) +
         "-D and " + std::to_string(b.dim()) + "-D tensors");
  check_dtypes(a, b);
  if (!c.test(sym_eq(a.sizes[1], b.sizes[0]), "mm reduction dim"))
    fail("mat1 and mat2 shapes cannot be multiplied (" + shape(a) + " and " + shape(b) + ")");
  return {a.sizes[0], b.sizes[1]};
}

SymList batch_product_sizes(FakeCall& c, std::string_view left, std::string_view right) {
  const TensorMeta &a = c.tensor(left), &b = c.tensor(right);
  if (a.dim() != 3) fail("batch1 must be a 3D tensor");
  if (b.dim() != 3) fail("batch2 must be a 3D tensor");
  check_dtypes(a, b);
  if (!c.test(sym_eq(a.sizes[0], b.sizes[0]), "bmm batch") ||
      !c.test(sym_eq(a.sizes[2], b.sizes[1]), "bmm reduction dim"))
    fail("Expected size for first two dimensions of batch2 tensor to be: [" + a.sizes[0].str() + ", " +
         a.sizes[2].str() + "] but got: [" + b.sizes[0].str() + ", " + b.sizes[1].str() + "].");
  return {a.sizes[0], a.sizes[1], b.sizes[2]};
}

/// Fails unless the addend of addmm and similar operators expands to the result.
void check_expandable(FakeCall& c, const SymList& sizes) {
  const TensorMeta& self = c.tensor("self");
  if (self.dim() > sizes.size()) fail("expand(" + shape(self) + "): the number of sizes provided is too small");
  std::size_t lead = sizes.size() - self.dim();
  for (std::size_t i = 0; i < self.dim(); ++i)
    if (!self.sizes[i].is(1) && !c.test(sym_eq(self.sizes[i], sizes[lead + i]), "addend expands"))
      fail("The expanded size of the tensor (" + sizes[lead + i].str() + ") must match the existing size (" +
           self.sizes[i].str() + ") at non-singleton dimension " + std::to_string(lead + i));
}

/// Fails unless the addend expands to the result and has the dtype of the factors.
void check_addend(FakeCall& c, const SymList& sizes, std::string_view factor) {
  const DType own = c.tensor("self").dtype, other = c.tensor(factor).dtype;
  if (own != other)
    fail("self and " + std::string(factor) + " must have the same dtype, but got " + std::string(torch_name(own)) +
         " and " + std::string(torch_name(other)));
  check_expandable(c, sizes);
}

Meta inner_meta(FakeCall& c, std::string_view left, std::string_view right) {
  const TensorMeta &a = c.tensor(left), &b = c.tensor(right);
  if (a.dim() != 1 || b.dim() != 1)
    fail("1D tensors expected, but got " + std::to_string(a.dim()) + "D and " + std::to_string(b.dim()) + "D tensors");
  check_dtypes(a, b);
  if (!c.test(sym_eq(a.sizes[0], b.sizes[0]), "dot"))
    fail("inconsistent tensor size, expected tensor [" + a.sizes[0].str() + "] and src [" + b.sizes[0].str() +
         "] to have the same number of elements");
  return new_like(a, {});
}

SymList matrix_vector_sizes(FakeCall& c, std::string_view matrix) {
  const TensorMeta &a = c.tensor(matrix), &x = c.tensor("vec");
  if (a.dim() != 2 || x.dim() != 1) fail("vector + matrix @ vector expected, got " + shape(a) + " and " + shape(x));
  check_dtypes(a, x);
  if (!c.test(sym_eq(a.sizes[1], x.sizes[0]), "mv"))
    fail("size mismatch, got input (" + a.sizes[0].str() + "), mat (" + shape(a) + "), vec (" + shape(x) + ")");
  return {a.sizes[0]};
}

}  // namespace

Meta fake_mm(FakeCall& c) {
  return new_like(c.tensor("self"), product_sizes(c, "self", "mat2"));
}

Meta fake_bmm(FakeCall& c) {
  return new_like(c.tensor("self"), batch_product_sizes(c, "self", "mat2"));
}

Meta fake_addmm(FakeCall& c) {
  SymList sizes = product_sizes(c, "mat1", "mat2");
  check_addend(c, sizes, "mat2");
  return new_like(c.tensor("mat1"), sizes);
}

Meta fake_baddbmm(FakeCall& c) {
  SymList sizes = batch_product_sizes(c, "batch1", "batch2");
  check_addend(c, sizes, "batch1");
  return new_like(c.tensor("batch1"), sizes);
}

Meta fake_addbmm(FakeCall& c) {
  SymList sizes = batch_product_sizes(c, "batch1", "batch2");
  sizes.erase(sizes.begin());
  check_addend(c, sizes, "batch1");
  return new_like(c.tensor("batch1"), sizes);
}

Meta fake_mv(FakeCall& c) {
  return new_like(c.tensor("self"), matrix_vector_sizes(c, "self"));
}

Meta fake_addmv(FakeCall& c) {
  SymList sizes = matrix_vector_sizes(c, "mat");
  check_addend(c, sizes, "mat");
  return new_like(c.tensor("mat"), sizes);
}

Meta fake_addr(FakeCall& c) {
  const TensorMeta &x = c.tensor("vec1"), &y = c.tensor("vec2");
  if (x.dim() != 1 || y.dim() != 1) fail("addr: Expected 1-D argument vec1 and vec2");
  SymList sizes = {x.sizes[0], y.sizes[0]};
  check_expandable(c, sizes);
  TensorMeta meta = new_like(x, sizes);
  meta.dtype = promote(c.tensor("self").dtype, promote(x.dtype, y.dtype));
  return meta;
}

Meta fake_dot(FakeCall& c) {
  return inner_meta(c, "self", "tensor");
}

Meta fake_vdot(FakeCall& c) {
  return inner_meta(c, "self", "other");
}

namespace {

bool column_major(const TensorMeta& t) {
  return t.strides[0].is(1) && t.strides[1] == t.sizes[0];
}

Node* t(Builder& b, Node* x) {
  return b.call("aten.t.default", {x});
}
Node* mm(Builder& b, Node* x, Node* y) {
  return b.call("aten.mm.default", {x, y});
}

/// As in PyTorch, the gradient of a matrix has the matrix's layout: for a column-major one its transpose is computed.
Node* left_gradient(GradCall& c, std::string_view left, std::string_view right, const Arg& alpha) {
  Builder& b = c.build;
  Node* grad = c.grads[0];
  Node* mat2 = tensor_node(c, right);
  Node* result;
  if (column_major(c.tensor(left)))
    result = t(b, mm(b, conj_if_complex(b, mat2), t(b, grad)));
  else {
    Node* transposed = conj_if_complex(b, t(b, mat2));
    result = mm(b, grad, transposed);
  }
  return multiply_unless_one(b, result, alpha);
}

Node* right_gradient(GradCall& c, std::string_view left, std::string_view right, const Arg& alpha) {
  Builder& b = c.build;
  Node* grad = c.grads[0];
  Node* mat1 = tensor_node(c, left);
  Node* result;
  if (column_major(c.tensor(right))) {
    Node* transposed = t(b, grad);
    result = t(b, mm(b, transposed, conj_if_complex(b, mat1)));
  } else {
    result = mm(b, conj_if_complex(b, t(b, mat1)), grad);
  }
  return multiply_unless_one(b, result, alpha);
}

// Gradient nodes come in the order of PyTorch's generated code, by argument name.
std::vector<Node*> grad_mm(GradCall& c) {
  GradientSlots slots(c);
  if (c.want("mat2")) slots["mat2"] = right_gradient(c, "self", "mat2", 1);
  if (c.want("self")) slots["self"] = left_gradient(c, "self", "mat2", 1);
  return slots;
}

std::vector<Node*> grad_addmm(GradCall& c) {
  GradientSlots slots(c);
  if (c.want("mat1")) slots["mat1"] = left_gradient(c, "mat1", "mat2", conjugate(c.arg("alpha")));
  if (c.want("mat2")) slots["mat2"] = right_gradient(c, "mat1", "mat2", conjugate(c.arg("alpha")));
  if (c.want("self")) slots["self"] = multiply_unless_one(c.build, c.grads[0], conjugate(c.arg("beta")));
  return slots;
}

Node* adjoint(GradCall& c, std::string_view name) {
  return conj_if_complex(c.build, c.build.call("aten.transpose.int", {tensor_node(c, name), 1, 2}));
}

/// For batches: left = grad @ right^H, right = left^H @ grad.
Node* batch_left_gradient(GradCall& c, std::string_view right, Node* grad, const Arg& alpha) {
  return multiply_unless_one(c.build, c.build.call("aten.bmm.default", {grad, adjoint(c, right)}), alpha);
}
Node* batch_right_gradient(GradCall& c, std::string_view left, Node* grad, const Arg& alpha) {
  return multiply_unless_one(c.build, c.build.call("aten.bmm.default", {adjoint(c, left), grad}), alpha);
}

std::vector<Node*> grad_bmm(GradCall& c) {
  GradientSlots slots(c);
  if (c.want("mat2")) slots["mat2"] = batch_right_gradient(c, "self", c.grads[0], 1);
  if (c.want("self")) slots["self"] = batch_left_gradient(c, "mat2", c.grads[0], 1);
  return slots;
}

std::vector<Node*> grad_baddbmm(GradCall& c) {
  GradientSlots slots(c);
  if (c.want("batch1")) slots["batch1"] = batch_left_gradient(c, "batch2", c.grads[0], conjugate(c.arg("alpha")));
  if (c.want("batch2")) slots["batch2"] = batch_right_gradient(c, "batch1", c.grads[0], conjugate(c.arg("alpha")));
  if (c.want("self")) slots["self"] = multiply_unless_one(c.build, c.grads[0], conjugate(c.arg("beta")));
  return slots;
}

std::vector<Node*> grad_addbmm(GradCall& c) {
  GradientSlots slots(c);
  Builder& b = c.build;
  const TensorMeta &left = c.tensor("batch1"), &right = c.tensor("batch2");
  Node* grad = b.call("aten.unsqueeze.default", {c.grads[0], 0});
  grad = b.call("aten.expand.default", {grad, b.sizes({left.sizes[0], left.sizes[1], right.sizes[2]})});
  if (c.want("batch1")) slots["batch1"] = batch_left_gradient(c, "batch2", grad, conjugate(c.arg("alpha")));
  if (c.want("batch2")) slots["batch2"] = batch_right_gradient(c, "batch1", grad, conjugate(c.arg("alpha")));
  if (c.want("self")) slots["self"] = multiply_unless_one(b, c.grads[0], conjugate(c.arg("beta")));
  return slots;
}

Node* outer(Builder& b, Node* x, Node* y) {
  Node* column = b.call("aten.view.default", {x, b.sizes({b.tensor(x).sizes[0], 1})});
  return b.call("aten.mul.Tensor", {column, y});
}

std::vector<Node*> matrix_vector_gradients(GradCall& c, std::string_view matrix, const Arg& alpha) {
  GradientSlots slots(c);
  Builder& b = c.build;
  if (c.want(matrix))
    slots[matrix] = multiply_unless_one(b, outer(b, c.grads[0], conj_if_complex(b, tensor_node(c, "vec"))), alpha);
  if (c.want("vec")) {
    Node* adjoint = t(b, conj_if_complex(b, tensor_node(c, matrix)));
    slots["vec"] = multiply_unless_one(b, b.call("aten.mv.default", {adjoint, c.grads[0]}), alpha);
  }
  return slots;
}

std::vector<Node*> grad_mv(GradCall& c) {
  return matrix_vector_gradients(c, "self", 1);
}

std::vector<Node*> grad_addmv(GradCall& c) {
  std::vector<Node*> gradients = matrix_vector_gradients(c, "mat", conjugate(c.arg("alpha")));
  if (c.want("self")) gradients[0] = multiply_unless_one(c.build, c.grads[0], conjugate(c.arg("beta")));
  return gradients;
}

std::vector<Node*> grad_addr(GradCall& c) {
  GradientSlots slots(c);
  Builder& b = c.build;
  auto conj = [&](std::string_view name) { return conj_if_complex(b, tensor_node(c, name)); };
  if (c.want("self")) slots["self"] = multiply_unless_one(b, c.grads[0], conjugate(c.arg("beta")));
  if (c.want("vec1"))
    slots["vec1"] =
        multiply_unless_one(b, b.call("aten.mv.default", {c.grads[0], conj("vec2")}), conjugate(c.arg("alpha")));
  if (c.want("vec2"))
    slots["vec2"] =
        multiply_unless_one(b, b.call("aten.mv.default", {t(b, c.grads[0]), conj("vec1")}), conjugate(c.arg("alpha")));
  return slots;
}

std::vector<Node*> grad_dot(GradCall& c) {
  GradientSlots slots(c);
  Builder& b = c.build;
  auto times = [&](std::string_view name) {
    return b.call("aten.mul.Tensor", {c.grads[0], conj_if_complex(b, tensor_node(c, name))});
  };
  if (c.want("self")) slots["self"] = times("tensor");
  if (c.want("tensor")) slots["tensor"] = times("self");
  return slots;
}

std::vector<Node*> grad_vdot(GradCall& c) {
  GradientSlots slots(c);
  Builder& b = c.build;
  if (c.want("self"))
    slots["self"] = b.call("aten.mul.Tensor", {conj_if_complex(b, c.grads[0]), tensor_node(c, "other")});
  if (c.want("other")) slots["other"] = b.call("aten.mul.Tensor", {c.grads[0], tensor_node(c, "self")});
  return slots;
}

/// A multiplication and an addition for each of the k products of an element; argument `factor` holds k last.
template <std::size_t factor>
std::optional<SymExpr> product_operations(const Node& call) {
  const TensorMeta *out = call.meta.tensor(), *left = tensor_argument(call, factor);
  if (!out || !left || left->sizes.empty()) return std::nullopt;
  return 2 * out->numel() * left->sizes.back();
}

}  // namespace

void register_matmul(OpTable& t) {
  t.add("aten.mm.default", {.fake = fake_mm,
                            .eval = eval_mm,
                            .gradient = grad_mm,
                            .expensive = true,
                            .operations = product_operations<0>,
                            .library = LibraryRoutine::Matmul});
  t.add("aten.bmm.default", {.fake = fake_bmm,
                             .eval = eval_bmm,
                             .gradient = grad_bmm,
                             .expensive = true,
                             .operations = product_operations<0>,
                             .library = LibraryRoutine::Matmul});
  t.add("aten.addmm.default", {.fake = fake_addmm,
                               .eval = eval_addmm,
                               .gradient = grad_addmm,
                               .expensive = true,
                               .operations = product_operations<1>,
                               .library = LibraryRoutine::AddMatmul});
  t.add("aten.baddbmm.default", {.fake = fake_baddbmm,
                                 .eval = eval_baddbmm,
                                 .gradient = grad_baddbmm,
                                 .expensive = true,
                                 .operations = product_operations<1>,
                                 .library = LibraryRoutine::AddMatmul});
  t.add("aten.addbmm.default", {.fake = fake_addbmm, .eval = eval_addbmm, .gradient = grad_addbmm, .expensive = true});
  t.add(
      "aten.mv.default",
      {.fake = fake_mv, .eval = eval_mv, .gradient = grad_mv, .expensive = true, .operations = product_operations<0>});
  t.add("aten.addmv.default", {.fake = fake_addmv,
                               .eval = eval_addmv,
                               .gradient = grad_addmv,
                               .expensive = true,
                               .operations = product_operations<1>});
  t.add("aten.addr.default", {.fake = fake_addr, .eval = eval_addr, .gradient = grad_addr});
  t.add("aten.dot.default",
        {.fake = fake_dot, .eval = eval_dot, .gradient = grad_dot, .operations = product_operations<0>});
  t.add("aten.vdot.default", {.fake = fake_vdot, .eval = eval_vdot, .gradient = grad_vdot});
  register_matmul_composites(t);
}

}  // namespace partita
