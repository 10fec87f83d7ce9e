#pragma once
// What operators with index tensors share.
#include "core/ops/kernels/indexing.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

/// Calls f(offset of a slice in the result, its offset in the source, number of elements) for each index and each outer
/// position.
template <class F>
void each_slice(const EvalCall& c, const Tensor& y, const Tensor& index, F f, bool wraps = false) {
  kernels::DimSplit split = kernels::split_at(y.sizes, wrap_dim(c.integer("dim"), y.dim()));
  std::int64_t count = index.numel();
  for (std::int64_t o = 0; o < split.outer; ++o)
    for (std::int64_t k : steps(count, split.inner)) {
      const std::int64_t given = index.as<std::int64_t>()[k];
      if (given < 0 && !wraps)
        fail("index " + std::to_string(given) + " is out of bounds for dimension 0 with size " +
             std::to_string(split.length));
      const std::int64_t at = kernels::checked_index(given, split.length, 0);
      f((o * split.length + at) * split.inner, (o * count + k) * split.inner, split.inner);
    }
}

inline void check_source(const EvalCall& c, const Tensor& y, const Tensor& index, const Tensor& source) {
  kernels::DimSplit split = kernels::split_at(y.sizes, wrap_dim(c.integer("dim"), y.dim()));
  if (source.numel() != split.outer * index.numel() * split.inner)
    fail(c.schema.base.substr(5) + "(): source does not have the shape of the indexed part");
}

/// How many elements of a mask are true: the number of an earlier call that selects by the same node, which PyTorch's
/// fake tensors remember too (FakeTensor.nonzero_memo), else a new one.
SymExpr selected_by(const FakeCall& c, const Arg& mask);

}  // namespace partita
