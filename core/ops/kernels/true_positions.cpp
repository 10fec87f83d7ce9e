#include "core/ops/kernels/true_positions.h"

namespace partita::kernels {

Tensor nonzero(const Tensor& t) {
  Tensor flags = load(t, DType::Bool);
  std::int64_t rank = t.dim(), count = 0;
  for (std::int64_t i : steps(flags.numel())) count += flags.as<StoredBool>()[i];
  Tensor out = empty(DType::Int64, {count, rank});
  Sizes strides = row_major_strides(t.sizes);
  std::int64_t* to = out.as<std::int64_t>();
  for (std::int64_t i : steps(flags.numel())) {
    if (!flags.as<StoredBool>()[i]) continue;
    for (std::size_t d = 0; d < strides.size(); ++d) *to++ = i / strides[d] % t.sizes[d];
  }
  return out;
}

}  // namespace partita::kernels
