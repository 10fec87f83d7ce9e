// embedding and its gradient.
#include "core/ops/families/lower_index.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

/// Rows of the weight as the argument `indices` names them.
Reach rows_of(LowerCall& call, const LoweredTensor& indices, SymExpr rows) {
  Reach reach(call, indices, 0, rows, false);
  reach.bound.space = "index out of range in self: " + reach.bound.space;
  return reach;
}

void lower_embedding(LowerCall& call) {
  const LoweredTensor weight = call.in("weight");
  const Reach reach = rows_of(call, integer_index(call, "indices"), weight.sizes[0]);
  call.give(call.to.map(weight.dtype, call.out_sizes(), [=](Body& body, const Index& i) {
    Index at(i.begin(), i.end() - 1);
    return body.read(weight, {reach.position(body, at), i.back()});
  }));
}

void lower_embedding_backward(LowerCall& call) {
  LoweredTensor grad = call.in("grad_output"), indices = integer_index(call, "indices");
  // The indices may have any rank; each stands for one row of the gradient.
  indices = call.to.reshape(indices, {indices.numel()});
  grad = call.to.reshape(grad, {indices.numel(), call.out_sizes()[1]});
  const std::int64_t rows = call.integer("num_weights"), padding = call.integer("padding_idx");
  const Reach reach = rows_of(call, indices, rows);
  LoweredTensor counts;  // of the indices of each row, by which its gradients are divided
  if (call.boolean("scale_grad_by_freq")) {
    if (!call.evaluates) fail_unsupported("gradients scaled by frequency");
    const Put once{indices.sizes, [](Body& body, const Index&) { return body.b.constant_int(DType::Int64, 1); },
                   [=](Body& body, const Index& i) { return Index{reach.position(body, i)}; }};
    counts = combined(call, call.to.constant(DType::Int64, {rows}, 0), once, {ScalarOp::Add});
  }
  const DType dtype = opmath_dtype(grad.dtype);
  const Put add{grad.sizes,
                [=](Body& body, const Index& i) {
                  ScalarBuilder& b = body.b;
                  Scalar g = b.cast(body.read(grad, i), dtype);
                  if (counts.valid()) {
                    const Scalar n = body.read(counts, {reach.position(body, {i[0]})});
                    g = b.Mul(g, b.Div(b.constant(dtype, 1), b.cast(n, dtype)));
                  }
                  if (padding < 0) return g;
                  Scalar index = b.cast(body.read(indices, {i[0]}), DType::Int64);
                  return b.where(b.Eq(index, b.constant_int(DType::Int64, padding)), b.constant(dtype, 0), g);
                },
                [=](Body& body, const Index& i) { return Index{reach.position(body, {i[0]}), i[1]}; }};
  call.give(combined(call, call.to.constant(dtype, call.out_sizes(), 0), add, {ScalarOp::Add}));
}

Meta fake_embedding(FakeCall& c) {
  const TensorMeta& weight = c.tensor("weight");
  if (weight.dim() != 2) fail("'weight' must be 2-D");
  if (!is_integral(c.tensor("indices").dtype))
    fail("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int");
  SymList sizes = c.tensor("indices").sizes;
  sizes.push_back(weight.sizes[1]);
  return new_like(weight, sizes);
}

Meta fake_embedding_dense_backward(FakeCall& c) {
  const TensorMeta& grad = c.tensor("grad_output");
  if (grad.dim() == 0) fail("embedding_dense_backward: grad_output has no dimensions");
  if (!checked(c, sym_eq(grad.numel(), c.tensor("indices").numel() * grad.sizes.back()), "embedding_dense_backward"))
    fail("embedding_dense_backward: grad_output does not fit the indices");
  return new_like(grad, {c.sym("num_weights"), grad.sizes.back()});
}

}  // namespace

void register_embedding(OpTable& t) {
  t.default_family = Family::Index;
  t.add("aten.embedding.default", fake_embedding, nullptr,
        {{"weight",
          "unsupported('embedding with sparse gradients') if sparse else "
          "aten.embedding_dense_backward.default(grad, indices, size(weight, 0), padding_idx, "
          "scale_grad_by_freq)"}},
        {.lower = lower_embedding});
  // Rows that are looked up and longer than max_norm are scaled to that length.
  t.add("aten.embedding_renorm.default",
        {.program = "norm = in_dtype(linalg_vector_norm(self, norm_type, [1], True), torch.float64); "
                    "rows = zeros_like(norm); once = ones_like(indices, dtype=torch.float64); "
                    "used = gt(index_put(rows, [indices, zeros_like(indices)], once), 0); "
                    "factor = in_dtype(max_norm / (norm + 1e-07), dtype(self)); "
                    "where(logical_and(used, gt(norm, max_norm)), self * factor, self)",
         .autograd = {.not_differentiable = true}});
  t.add("aten.embedding_dense_backward.default", fake_embedding_dense_backward, nullptr,
        {{"grad_output", "aten.embedding.default(grad, indices, padding_idx)"}}, {.lower = lower_embedding_backward});
}

}  // namespace partita
