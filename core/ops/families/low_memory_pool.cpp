// Inductor's max pooling, which stores the 8-bit offset within the window instead of an index.
#include "core/ops/families/pool.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

Meta fake_with_offsets(FakeCall& c) {
  TensorMeta values = pooled(c, c.tensor("self"), c.syms("kernel_size").size()), offsets = values;
  offsets.dtype = DType::Int8;
  return MetaTuple{{values, offsets}};
}

/// f(place in the last `rank` dimensions, number) of each number.
Tensor mapped(const Tensor& numbers, std::size_t rank, auto f) {
  const Tensor from = load(numbers, DType::Int64), to = empty(DType::Int64, from.sizes);
  Sizes at(rank, 0);
  for (std::int64_t i : steps(from.numel())) {
    to.as<std::int64_t>()[i] = f(at, from.as<std::int64_t>()[i]);
    for (std::size_t d = rank; d-- > 0;) {
      if (++at[d] < from.sizes[from.sizes.size() - rank + d]) break;
      at[d] = 0;
    }
  }
  return to;
}

Value eval_with_offsets(EvalCall& c) {
  std::size_t rank = c.integers("kernel_size").size();
  std::string op = rank == 2 ? "aten.max_pool2d_with_indices.default" : "aten.max_pool3d_with_indices.default";
  Value pooled = unwrap(evaluate(Op::torch(op), c.args, {}, c.context));
  const ValueList& pair = *pooled.get<ValueList>();
  PoolArguments a = pool_arguments(c, rank);
  const Sizes& in = c.tensor("self").sizes;
  return ValueList{pair[0], mapped(*pair[1].get<Tensor>(), rank, [&](const Sizes& at, std::int64_t index) {
                     std::int64_t offset = 0, step = 1;
                     for (std::size_t d = rank; d-- > 0;) {
                       std::int64_t size = in[in.size() - rank + d], base = at[d] * a.stride[d] - a.padding[d];
                       offset += (index % size - base) / a.dilation[d] * step;
                       step *= a.kernel[d];
                       index /= size;
                     }
                     return offset;
                   })};
}

/// PyTorch computes base + offset * dilation for each dimension and adds these. The strides of the result are those of
/// its broadcast additions.
Meta fake_offsets_to_indices(FakeCall& c) {
  const TensorMeta& offsets = c.tensor("self");
  std::size_t rank = c.syms("kernel_size").size();
  if (rank < 1 || rank > 3 || offsets.dim() < rank || c.syms("input_size").size() != rank)
    fail(
        "_low_memory_max_pool_offsets_to_indices: kernel_size, input_size and the offsets' dimensions do not fit "
        "together");
  pool_arguments(c, rank);
  TensorMeta sum = new_like(offsets, offsets.sizes);
  sum.dtype = DType::Int64;
  TensorMeta increment = sum;
  increment.strides = offsets.strides;
  for (std::size_t d = 0; d < rank; ++d) {
    TensorMeta base = sum, index = sum;
    base.sizes.assign(offsets.dim(), 1);
    std::size_t at = offsets.dim() - rank + d;
    base.sizes[at] = offsets.sizes[at];
    base.strides = contiguous_strides(base.sizes);
    const TensorMeta* terms[] = {&base, &increment};
    index.strides = elementwise_strides(c, sum.sizes, terms);
    const TensorMeta* both[] = {&sum, &index};
    sum.strides = d == 0 ? index.strides : elementwise_strides(c, sum.sizes, both);
  }
  return sum;
}

Value eval_offsets_to_indices(EvalCall& c) {
  std::size_t rank = c.integers("kernel_size").size();
  PoolArguments a = pool_arguments(c, rank);
  Sizes in = c.integers("input_size");
  return mapped(c.tensor("self"), rank, [&](const Sizes& at, std::int64_t offset) {
    std::int64_t index = 0, step = 1;
    for (std::size_t d = rank; d-- > 0;) {
      index += (at[d] * a.stride[d] - a.padding[d] + offset % a.kernel[d] * a.dilation[d]) * step;
      offset /= a.kernel[d];
      step *= in[d];
    }
    return index;
  });
}

}  // namespace

void register_low_memory_pool(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add("prims._low_memory_max_pool_with_offsets.default", fake_with_offsets, eval_with_offsets);
  t.add("prims._low_memory_max_pool_offsets_to_indices.default", fake_offsets_to_indices, eval_offsets_to_indices, {},
        {.cost = {.recomputable = true}});
}

}  // namespace partita
