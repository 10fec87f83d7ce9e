// Matrix products: mm, bmm, dot, mv and their sums with a third operand.
#include "core/ops/families/matmul.h"

#include "core/ops/facts/operations.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {
using namespace loops;

/// The sums of matrix * vector along rows, which stay with size 1. A vector in place of the matrix is one row.
LoweredTensor row_sums(LowerCall& call, std::string_view matrix, std::string_view vector) {
  const DType given = call.in(matrix).dtype;
  if (is_complex(given) || given == DType::Bool)
    fail_unsupported("products of vectors of " + std::string(torch_name(given)));
  const DType dtype = opmath_dtype(given);
  const LoweredTensor m = call.to.cast(call.in(matrix), dtype), v = call.to.cast(call.in(vector), dtype);
  std::vector<bool> reduced(m.dim(), false);
  reduced.back() = true;
  return call.to.reduce(dtype, m.sizes, std::move(reduced), ScalarOp::Add, [=](Body& body, const Index& i) {
    return body.b.Mul(body.read(m, i), body.read(v, {i.back()}));
  });
}

void lower_mv(LowerCall& call) {
  call.give(row_sums(call, "self", "vec"));
}

void lower_dot(LowerCall& call) {
  call.give(row_sums(call, "self", "tensor"));
}

/// Gives beta * self + alpha * product. PyTorch rounds half types in between.
void give_scaled_sum(LowerCall& call, const LoweredTensor& product) {
  if (!is_floating(product.dtype) || itemsize(call.out().dtype) < 4)
    fail_unsupported("a scaled sum of " + std::string(torch_name(call.out().dtype)));
  const double alpha = as_double(call.number("alpha")), beta = as_double(call.number("beta"));
  call.give(pointwise(call.to, product.dtype, product.dtype, {product, call.in("self")}, [=](ScalarBuilder& b, auto v) {
    const auto scaled = [&](Scalar x, double by) { return by == 1 ? x : b.Mul(x, b.constant(b.dtype(x), by)); };
    const Scalar p = scaled(v[0], alpha);
    return beta == 0 ? p : b.Add(scaled(v[1], beta), p);
  }));
}

void lower_addmv(LowerCall& call) {
  const LoweredTensor sums = row_sums(call, "mat", "vec");
  give_scaled_sum(call, call.to.reshape(sums, {sums.sizes[0]}));
}

void lower_addr(LowerCall& call) {
  const LoweredTensor x = call.in("vec1"), y = call.in("vec2");
  const DType dtype = call.out().dtype;
  give_scaled_sum(call, call.to.map(dtype, call.out_sizes(), [=](Body& body, const Index& i) {
    return body.b.Mul(body.b.cast(body.read(x, {i[0]}), dtype), body.b.cast(body.read(y, {i[1]}), dtype));
  }));
}

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

SymList product_sizes(FakeCall& c, std::string_view left, std::string_view right, bool same_dtype = true) {
  const TensorMeta &a = c.tensor(left), &b = c.tensor(right);
  if (a.dim() != 2 || b.dim() != 2)
    fail(std::string(left) + " and " + std::string(right) + " must be matrices, got " + std::to_string(a.dim()) +
         "-D and " + std::to_string(b.dim()) + "-D tensors");
  if (same_dtype) check_dtypes(a, b);
  if (!checked(c, sym_eq(a.sizes[1], b.sizes[0]), "mm reduction dim"))
    fail("mat1 and mat2 shapes cannot be multiplied (" + shape(a) + " and " + shape(b) + ")");
  return {a.sizes[0], b.sizes[1]};
}

SymList batch_product_sizes(FakeCall& c, std::string_view left, std::string_view right) {
  const TensorMeta &a = c.tensor(left), &b = c.tensor(right);
  if (a.dim() != 3) fail("batch1 must be a 3D tensor");
  if (b.dim() != 3) fail("batch2 must be a 3D tensor");
  check_dtypes(a, b);
  if (!checked(c, sym_eq(a.sizes[0], b.sizes[0]), "bmm batch") ||
      !checked(c, sym_eq(a.sizes[2], b.sizes[1]), "bmm reduction dim"))
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
    if (!self.sizes[i].is(1) && !checked(c, sym_eq(self.sizes[i], sizes[lead + i]), "addend expands"))
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
  if (!checked(c, sym_eq(a.sizes[0], b.sizes[0]), "dot"))
    fail("inconsistent tensor size, expected tensor [" + a.sizes[0].str() + "] and src [" + b.sizes[0].str() +
         "] to have the same number of elements");
  return new_like(a, {});
}

SymList matrix_vector_sizes(FakeCall& c, std::string_view matrix) {
  const TensorMeta &a = c.tensor(matrix), &x = c.tensor("vec");
  if (a.dim() != 2 || x.dim() != 1) fail("vector + matrix @ vector expected, got " + shape(a) + " and " + shape(x));
  check_dtypes(a, x);
  if (!checked(c, sym_eq(a.sizes[1], x.sizes[0]), "mv"))
    fail("size mismatch, got input (" + a.sizes[0].str() + "), mat (" + shape(a) + "), vec (" + shape(x) + ")");
  return {a.sizes[0]};
}

}  // namespace

Meta fake_mm(FakeCall& c) {
  return new_like(c.tensor("self"), product_sizes(c, "self", "mat2"));
}

Meta fake_int_mm(FakeCall& c) {
  const DType left = c.tensor("self").dtype, right = c.tensor("mat2").dtype;
  if (left != DType::Int8 && left != DType::UInt8)
    fail("int_mm_out_cpu: Expected self dtype to be int8 or uint8 but got " + std::string(torch_name(left)));
  if (right != DType::Int8)
    fail("int_mm_out_cpu: Expected mat2 dtype to be int8 but got " + std::string(torch_name(right)));
  TensorMeta meta = new_like(c.tensor("self"), product_sizes(c, "self", "mat2", false));
  meta.dtype = DType::Int32;
  return meta;
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
  // A column times a row plus self, as one elementwise call.
  TensorMeta column = x, row = y;
  column.sizes = {x.sizes[0], 1};
  column.strides = {x.strides[0], x.sizes[0] * x.strides[0]};
  row.sizes = {1, y.sizes[0]};
  row.strides = {y.sizes[0] * y.strides[0], y.strides[0]};
  TensorMeta meta = new_like(x, sizes);
  meta.dtype = promote(c.tensor("self").dtype, promote(x.dtype, y.dtype));
  const TensorMeta* const operands[] = {&c.tensor("self"), &column, &row};
  meta.strides = elementwise_strides(c, sizes, operands);
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

// mm_mat1_grad(grad, mat1, mat2, alpha) and mm_mat2_grad. As in PyTorch, the gradient of a matrix has the matrix's
// layout: for a column-major one its transpose is computed.
Arg mm_mat1_grad(const FormulaCall& f) {
  return f(column_major(f.tensor(1)) ? "maybe_multiply(t(mm(conj(x2), t(x0))), conj(x3))"
                                     : "maybe_multiply(mm(x0, conj(t(x2))), conj(x3))");
}
Arg mm_mat2_grad(const FormulaCall& f) {
  return f(column_major(f.tensor(2)) ? "maybe_multiply(t(mm(t(x0), conj(x1))), conj(x3))"
                                     : "maybe_multiply(mm(conj(t(x1)), x0), conj(x3))");
}

template <std::size_t left>
std::optional<SymExpr> product_with(const Node& call) {
  return product_operations(call, left);
}

std::optional<SymExpr> addbmm_operations(const Node& call) {
  const TensorMeta *a = tensor_argument(call, 1), *b = tensor_argument(call, 2);
  if (!a || !b || b->sizes.empty()) return std::nullopt;
  return 2 * a->numel() * b->sizes.back();
}

}  // namespace

void register_matmul(OpTable& t) {
  t.default_family = Family::Matmul;
  t.add_formula_functions({{"mm_mat1_grad", mm_mat1_grad}, {"mm_mat2_grad", mm_mat2_grad}});
  t.add("aten.mm.default", fake_mm, eval_mm,
        {{"self", "mm_mat1_grad(grad, self, mat2, 1)"}, {"mat2", "mm_mat2_grad(grad, self, mat2, 1)"}},
        {.cost = {.expensive = true, .operations = product_with<0>}, .library = LibraryRoutine::Matmul});
  t.add("aten._int_mm.default", fake_int_mm, eval_int_mm, {},
        {.autograd = {.not_differentiable = true},
         .cost = {.expensive = true, .operations = product_with<0>},
         .library = LibraryRoutine::Matmul});
  t.add("aten.bmm.default", fake_bmm, eval_bmm,
        {{"self", "bmm(grad, conj(transpose(mat2, 1, 2)))"}, {"mat2", "bmm(conj(transpose(self, 1, 2)), grad)"}},
        {.cost = {.expensive = true, .operations = product_with<0>}, .library = LibraryRoutine::Matmul});
  t.add("aten.addmm.default", fake_addmm, eval_addmm,
        {{"self", "maybe_multiply(grad, conj(beta))"},
         {"mat1", "mm_mat1_grad(grad, mat1, mat2, alpha)"},
         {"mat2", "mm_mat2_grad(grad, mat1, mat2, alpha)"}},
        {.cost = {.expensive = true, .operations = product_with<1>}, .library = LibraryRoutine::AddMatmul});
  t.add("aten.baddbmm.default", fake_baddbmm, eval_baddbmm,
        {{"self", "maybe_multiply(grad, conj(beta))"},
         {"batch1", "maybe_multiply(bmm(grad, conj(transpose(batch2, 1, 2))), conj(alpha))"},
         {"batch2", "maybe_multiply(bmm(conj(transpose(batch1, 1, 2)), grad), conj(alpha))"}},
        {.cost = {.expensive = true, .operations = product_with<1>}, .library = LibraryRoutine::AddMatmul});
  t.add("aten.addbmm.default", fake_addbmm, eval_addbmm,
        {{"batch1, batch2",
          "g = expand(unsqueeze(grad, 0), [size(batch1, 0), size(batch1, 1), size(batch2, 2)]); "
          "(maybe_multiply(bmm(g, conj(transpose(batch2, 1, 2))), conj(alpha)) if output_mask[0] else None, "
          "maybe_multiply(bmm(conj(transpose(batch1, 1, 2)), g), conj(alpha)) if output_mask[1] else None)"},
         {"self", "maybe_multiply(grad, conj(beta))"}},
        {.cost = {.expensive = true, .operations = addbmm_operations}});
  t.add("aten.mv.default", fake_mv, eval_mv,
        {{"self", "v = conj(vec); view(grad, [size(grad, 0), 1]) * v"}, {"vec", "mv(t(conj(self)), grad)"}},
        {.lower = lower_mv, .cost = {.expensive = true, .operations = product_with<0>}});
  t.add("aten.addmv.default", fake_addmv, eval_addmv,
        {{"self", "maybe_multiply(grad, conj(beta))"},
         {"mat", "v = conj(vec); maybe_multiply(view(grad, [size(grad, 0), 1]) * v, conj(alpha))"},
         {"vec", "maybe_multiply(mv(t(conj(mat)), grad), conj(alpha))"}},
        {.lower = lower_addmv, .cost = {.expensive = true, .operations = product_with<1>}});
  t.add("aten.addr.default", fake_addr, eval_addr,
        {{"self", "maybe_multiply(grad, conj(beta))"},
         {"vec1", "maybe_multiply(mv(grad, conj(vec2)), conj(alpha))"},
         {"vec2", "maybe_multiply(mv(t(grad), conj(vec1)), conj(alpha))"}},
        {.lower = lower_addr});
  t.add("aten.dot.default", fake_dot, eval_dot, {{"self", "grad * conj(tensor)"}, {"tensor", "grad * conj(self)"}},
        {.lower = lower_dot, .cost = {.operations = product_with<0>}});
  t.add("aten.vdot.default", fake_vdot, eval_vdot, {{"self", "conj(grad) * other"}, {"other", "grad * self"}});
}

}  // namespace partita
