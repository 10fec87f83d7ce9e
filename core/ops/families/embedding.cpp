// embedding and its gradient.
#include "core/ops/families/lower_index.h"
#include "core/ops/kernels/indexing.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

void lower_embedding(LowerCall& call) {
  LoweredTensor weight = call.in("weight"), indices = integer_index(call, "indices");
  Reach reach(call, 0, weight.sizes[0], false);
  call.give(call.to.map(weight.dtype, call.out_sizes(), [=](Body& body, const Index& i) {
    Index at(i.begin(), i.end() - 1);
    return body.read(weight, {reach.position(body, indices, at), i.back()});
  }));
}

/// Half types accumulate in float32 and are rounded once.
void lower_embedding_backward(LowerCall& call) {
  LoweredTensor grad = call.in("grad_output"), indices = integer_index(call, "indices");
  grad = call.to.cast(grad, opmath_dtype(grad.dtype));
  // The indices may have any rank; each stands for one row of the gradient.
  indices = call.to.reshape(indices, {indices.numel()});
  grad = call.to.reshape(grad, {indices.numel(), call.out_sizes()[1]});
  if (call.boolean("scale_grad_by_freq")) fail_unsupported("gradients scaled by frequency");
  std::int64_t rows = call.integer("num_weights"), padding = call.integer("padding_idx");
  Reach reach(call, 0, rows, false);
  LoweredTensor zero = call.to.constant(grad.dtype, call.out_sizes(), 0);
  Write add{grad.sizes,
            [=](Body& body, const Index& i) {
              Scalar g = body.read(grad, i);
              if (padding < 0) return g;
              Scalar index = body.b.cast(body.read(indices, Index(i.begin(), i.end() - 1)), DType::Int64);
              return body.b.where(body.b.Eq(index, body.b.constant_int(DType::Int64, padding)),
                                  body.b.constant(grad.dtype, 0), g);
            },
            [=](Body& body, const Index& i) {
              return Index{reach.position(body, indices, Index(i.begin(), i.end() - 1)), i.back()};
            },
            true, true};
  call.give(call.to.writes(grad.dtype, zero.sizes, {whole(zero), std::move(add)}));
}

using namespace kernels;

Meta fake_embedding(FakeCall& c) {
  const TensorMeta& weight = c.tensor("weight");
  if (weight.dim() != 2) fail("'weight' must be 2-D");
  if (!is_integral(c.tensor("indices").dtype))
    fail("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int");
  SymList sizes = c.tensor("indices").sizes;
  sizes.push_back(weight.sizes[1]);
  return new_like(weight, sizes);
}

Value eval_embedding(EvalCall& c) {
  Tensor out = allocate(c, fake_embedding);
  Tensor weight = load(c.tensor("weight"), out.dtype), index = load(c.tensor("indices"), DType::Int64);
  std::int64_t width = weight.sizes[1];
  dispatch_width(weight.dtype, [&]<class T>() {
    for (std::int64_t i : steps(index.numel())) {
      std::int64_t row = index.as<std::int64_t>()[i];
      if (row < 0 || row >= weight.sizes[0]) fail("index out of range in self");
      std::copy_n(weight.as<T>() + row * width, width, out.as<T>() + i * width);
    }
  });
  return out;
}

Meta fake_embedding_dense_backward(FakeCall& c) {
  const TensorMeta& grad = c.tensor("grad_output");
  if (grad.dim() == 0) fail("embedding_dense_backward: grad_output has no dimensions");
  if (!checked(c, sym_eq(grad.numel(), c.tensor("indices").numel() * grad.sizes.back()), "embedding_dense_backward"))
    fail("embedding_dense_backward: grad_output does not fit the indices");
  return new_like(grad, {c.sym("num_weights"), grad.sizes.back()});
}

Value eval_embedding_dense_backward(EvalCall& c) {
  Tensor out = allocate(c, fake_embedding_dense_backward);
  DType dtype = evaluation_dtype(out.dtype);
  Tensor grad = load(c.tensor("grad_output"), dtype), index = load(c.tensor("indices"), DType::Int64),
         sum = zeros(dtype, out.sizes);
  std::int64_t width = out.sizes[1], padding = c.integer("padding_idx"), rows = out.sizes[0];
  std::vector<std::int64_t> counts(static_cast<std::size_t>(rows), 0);
  for (std::int64_t i : steps(index.numel())) {
    std::int64_t row = index.as<std::int64_t>()[i];
    if (row < 0 || row >= rows) fail("index out of range in self");
    ++counts[static_cast<std::size_t>(row)];
  }
  bool by_frequency = c.boolean("scale_grad_by_freq");
  dispatch_floating(dtype, "embedding_backward", [&]<class T>() {
    for (std::int64_t i : steps(index.numel())) {
      std::int64_t row = index.as<std::int64_t>()[i];
      if (row == padding) continue;
      T scale = by_frequency ? T(1) / static_cast<T>(counts[static_cast<std::size_t>(row)]) : T(1);
      for (std::int64_t k = 0; k < width; ++k) sum.as<T>()[row * width + k] += grad.as<T>()[i * width + k] * scale;
    }
  });
  return with_elements(out, sum);
}

}  // namespace

void register_embedding(OpTable& t) {
  t.default_family = Family::Index;
  t.add("aten.embedding.default", fake_embedding, eval_embedding,
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
  t.add("aten.embedding_dense_backward.default", fake_embedding_dense_backward, eval_embedding_dense_backward,
        {{"grad_output", "aten.embedding.default(grad, indices, padding_idx)"}}, {.lower = lower_embedding_backward});
}

}  // namespace partita
