// Products of groups of rows, each with a matrix of its own, as mixtures of experts use them: PyTorch's _grouped_mm,
// and the operator that transformers has in its place for dtypes that torch.compile does not take.
#include "core/ops/kernels/gemm.h"
#include "core/ops/kernels/in_parts.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

using namespace kernels;

/// Ends of groups: an integer each, of which none is before the one before it or after `size`.
Sizes ends_of(const Tensor& offs, std::int64_t size) {
  Sizes ends;
  std::int64_t before = 0;
  const Tensor own = load(offs, DType::Int64);
  for (std::int64_t i = 0; i < own.numel(); ++i) {
    const std::int64_t end = own.as<std::int64_t>()[i];
    if (end < before || end > size)
      fail("grouped_mm: offs must not decrease or pass " + std::to_string(size) + ", but has " + std::to_string(end) +
           " at " + std::to_string(i));
    ends.push_back(before = end);
  }
  return ends;
}

/// Matrices of a batch, or one.
template <class T>
MatrixView<T> matrix(const Tensor& t, std::int64_t i, std::int64_t row, std::int64_t column) {
  const std::size_t d = t.sizes.size();
  const std::int64_t rows = t.strides[d - 2], columns = t.strides[d - 1];
  return {t.as<T>() + (d == 3 ? i * t.strides[0] : 0) + row * rows + column * columns, rows, columns};
}

/// a b group by group, in the accumulator's dtype: the groups are rows of a, columns of b, or parts of what is summed
/// over, by which of them has two dimensions. What no group reaches is 0.
Tensor grouped_product(const EvalCall& c, const Tensor& left, const Tensor& right, const Tensor* offs) {
  const DType dtype = evaluation_dtype(left.dtype);
  const Tensor a = left.dtype == dtype ? left : load(left, dtype),
               b = right.dtype == dtype ? right : load(right, dtype);
  const bool a_flat = a.sizes.size() == 2, b_flat = b.sizes.size() == 2;
  const std::int64_t m = a.sizes[a.sizes.size() - 2], k = a.sizes.back(), n = b.sizes.back();
  const std::int64_t groups = offs ? offs->numel() : a.sizes[0];
  const std::int64_t grouped = a_flat && b_flat ? k : a_flat ? m : n;
  const Sizes ends = offs ? ends_of(*offs, grouped) : Sizes();
  Tensor out = zeros(accumulate_dtype(dtype), a_flat == b_flat ? Sizes{groups, m, n} : Sizes{m, n});
  dispatch_floating(dtype, "grouped_mm", [&]<class T>() {
    auto* const to = out.as<AccumulateType<T>>();
    in_parts(c.context, groups, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t begin = i > 0 && offs ? ends[static_cast<std::size_t>(i - 1)] : 0;
        const std::int64_t size = offs ? ends[static_cast<std::size_t>(i)] - begin : 0;
        if (!offs)
          gemm(m, n, k, matrix<T>(a, i, 0, 0), matrix<T>(b, i, 0, 0), to + i * m * n, n);
        else if (a_flat && b_flat)
          gemm(m, n, size, matrix<T>(a, 0, 0, begin), matrix<T>(b, 0, begin, 0), to + i * m * n, n);
        else if (a_flat)
          gemm(size, n, k, matrix<T>(a, 0, begin, 0), matrix<T>(b, i, 0, 0), to + begin * n, n);
        else
          gemm(m, size, k, matrix<T>(a, i, 0, 0), matrix<T>(b, 0, 0, begin), to + begin, n);
      }
    });
  });
  return out;
}

void check_floating(const TensorMeta& a, const TensorMeta& b) {
  if (!is_floating(a.dtype) || a.dtype != b.dtype)
    fail("grouped_mm: expected two floating tensors of one dtype, but got " + std::string(torch_name(a.dtype)) +
         " and " + std::string(torch_name(b.dtype)));
}

Meta fake_grouped_mm(FakeCall& c) {
  const TensorMeta &a = c.tensor("self"), &b = c.tensor("mat2");
  check_floating(a, b);
  if (c.has("bias")) fail("_grouped_mm: Bias not supported yet");
  if (c.has("out_dtype") && c.dtype("out_dtype") != a.dtype) fail_unsupported("_grouped_mm with another output dtype");
  const auto flat_or_batch = [](const TensorMeta& t) { return t.dim() == 2 || t.dim() == 3; };
  if (!flat_or_batch(a) || !flat_or_batch(b))
    fail("Multiplicands must be 2D or 3D but got mat_a.dim()=" + std::to_string(a.dim()) +
         " and mat_b.dim()=" + std::to_string(b.dim()));
  const bool a_flat = a.dim() == 2, b_flat = b.dim() == 2;
  if (!checked(c, sym_eq(a.sizes.back(), b.sizes[b.dim() - 2]), "_grouped_mm contraction"))
    fail("contraction dimension of mat_a and mat_b must match");
  if (c.has("offs") == (!a_flat && !b_flat)) fail("_grouped_mm: offs are for a multiplicand of two dimensions");
  const SymExpr groups = c.has("offs") ? c.tensor("offs").numel() : b.sizes[0];
  for (const TensorMeta* t : {&a, &b})
    if (t->dim() == 3 && !checked(c, sym_eq(t->sizes[0], groups), "_grouped_mm batch"))
      fail("matrix batch sizes have to match");
  const SymExpr m = a.sizes[a.dim() - 2], n = b.sizes.back();
  return new_like(a, a_flat == b_flat ? SymList{groups, m, n} : SymList{m, n});
}

Value eval_grouped_mm(EvalCall& c) {
  const Tensor* offs = c.has("offs") ? &c.tensor("offs") : nullptr;
  return grouped_product(c, c.tensor("self"), c.tensor("mat2"), offs);
}

/// Checks that the weight has a matrix for each group of rows.
void check_fallback(FakeCall& c) {
  const TensorMeta &x = c.tensor("input"), &weight = c.tensor("weight"), &offs = c.tensor("offs");
  check_floating(x, weight);
  if (x.dim() != 2 || weight.dim() != 3 || offs.dim() != 1 ||
      !checked(c, sym_eq(x.sizes[1], weight.sizes[1]), "grouped_mm contraction") ||
      !checked(c, sym_eq(offs.sizes[0], weight.sizes[0]), "grouped_mm groups"))
    fail("grouped_mm_fallback takes rows, a matrix for each group of them, and where the groups end");
}

Meta fake_fallback(FakeCall& c) {
  check_fallback(c);
  const TensorMeta& x = c.tensor("input");
  return new_like(x, {x.sizes[0], c.tensor("weight").sizes[2]});
}
Value eval_fallback(EvalCall& c) {
  return grouped_product(c, c.tensor("input"), c.tensor("weight"), &c.tensor("offs"));
}

Meta fake_fallback_backward(FakeCall& c) {
  check_fallback(c);
  return MetaTuple{{like_preserving(c.tensor("input"), c.shapes), like_preserving(c.tensor("weight"), c.shapes)}};
}
Value eval_fallback_backward(EvalCall& c) {
  const Tensor &x = c.tensor("input"), &weight = c.tensor("weight"), &grad = c.tensor("grad_output");
  const Tensor of_weight = weight.view_as({weight.sizes[0], weight.sizes[2], weight.sizes[1]},
                                          {weight.strides[0], weight.strides[2], weight.strides[1]}, weight.offset);
  const Tensor of_rows = x.view_as({x.sizes[1], x.sizes[0]}, {x.strides[1], x.strides[0]}, x.offset);
  return ValueList{grouped_product(c, grad, of_weight, &c.tensor("offs")),
                   grouped_product(c, of_rows, grad, &c.tensor("offs"))};
}

/// As two products; the gradient of a weight that lies transposed is made so.
Arg decompose_fallback_backward(DecomposeCall& c) {
  Builder& b = c.build;
  Node *x = tensor_node(c, "input"), *weight = tensor_node(c, "weight"), *grad = tensor_node(c, "grad_output");
  const TensorMeta turned = Builder::tensor(b.call("aten.transpose.int", {weight, -2, -1}));
  const auto as = [&](Node* made, std::string_view name) {
    const TensorMeta wanted = like_preserving(c.tensor(name), c.shapes);
    if (Builder::tensor(made).strides == wanted.strides) return made;
    Node* const memory = b.call("aten.empty_strided.default", {b.sizes(wanted.sizes), b.sizes(wanted.strides)},
                                {{"dtype", wanted.dtype}, {"device", wanted.device}});
    return b.call("aten.copy.default", {memory, made});
  };
  const auto turn = [&](Node* t) { return b.call("aten.transpose.int", {t, -2, -1}); };
  Node* const of_input = b.call("aten._grouped_mm.default", {grad, turn(weight), c.arg("offs")});
  Node* const of_weight = is_row_major(turned)
                              ? turn(b.call("aten._grouped_mm.default", {turn(grad), x, c.arg("offs")}))
                              : b.call("aten._grouped_mm.default", {turn(x), grad, c.arg("offs")});
  return Arg::tuple({as(of_input, "input"), as(of_weight, "weight")});
}

}  // namespace

void register_grouped_mm(OpTable& t) {
  t.default_family = Family::Matmul;
  t.add("aten._grouped_mm.default", fake_grouped_mm, eval_grouped_mm,
        {{"self", "_grouped_mm(grad, transpose(mat2, -2, -1), offs)"},
         {"mat2", "_grouped_mm(transpose(self, -2, -1), grad, offs)"}},
        {.cost = {.expensive = true}, .library = LibraryRoutine::GroupedMatmul});
  t.add("transformers.grouped_mm_fallback.default", fake_fallback, eval_fallback,
        {{"input, weight", "transformers.grouped_mm_fallback_backward.default(input, weight, offs, grad)"}},
        {.cost = {.expensive = true}, .library = LibraryRoutine::GroupedMatmul});
  t.add("transformers.grouped_mm_fallback_backward.default", fake_fallback_backward, eval_fallback_backward, {},
        {.compile_decompose = decompose_fallback_backward, .kept = Kept::HalfTypes, .cost = {.expensive = true}});
}

}  // namespace partita
