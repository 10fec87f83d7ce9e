#include "core/ops/kernels/broadcast.h"

namespace partita::kernels {

std::int64_t Operands::numel() const {
  std::int64_t n = 1;
  for (auto s : sizes) n *= s;
  return n;
}

Tensor expand_load(const Tensor& t, const Sizes& sizes, DType dtype) {
  Tensor row_major = load(t, dtype);
  if (row_major.sizes == sizes) return row_major;
  if (row_major.sizes.size() > sizes.size()) fail("operands do not broadcast");
  std::size_t lead = sizes.size() - row_major.sizes.size();
  Sizes strides(sizes.size(), 0);
  for (std::size_t i = 0; i < row_major.sizes.size(); ++i) {
    if (row_major.sizes[i] != sizes[lead + i] && row_major.sizes[i] != 1) fail("operands do not broadcast");
    strides[lead + i] = row_major.sizes[i] == 1 ? 0 : row_major.strides[i];
  }
  return unwrap(row_major.view_as(sizes, strides, row_major.offset).contiguous());
}

Operands broadcast_load(std::span<const Tensor* const> operands, DType dtype) {
  Operands out;
  for (const Tensor* t : operands) {
    if (!t) continue;
    if (t->sizes.size() > out.sizes.size()) out.sizes.insert(out.sizes.begin(), t->sizes.size() - out.sizes.size(), 1);
    std::size_t lead = out.sizes.size() - t->sizes.size();
    for (std::size_t i = 0; i < t->sizes.size(); ++i)
      if (t->sizes[i] != 1) out.sizes[lead + i] = t->sizes[i];
  }
  for (const Tensor* t : operands) out.tensors.push_back(t ? expand_load(*t, out.sizes, dtype) : Tensor{});
  return out;
}

}  // namespace partita::kernels
