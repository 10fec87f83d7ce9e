#include "core/ops/kernels/indexing.h"

#include "core/ops/kernels/broadcast.h"

namespace partita::kernels {

Sizes Indexing::sizes() const {
  Sizes all = before;
  all.insert(all.end(), replacement.begin(), replacement.end());
  all.insert(all.end(), after.begin(), after.end());
  return all;
}

std::int64_t checked_index(std::int64_t index, std::int64_t size, std::int64_t dim) {
  if (index < -size || index >= size)
    fail("index " + std::to_string(index) + " is out of bounds for dimension " + std::to_string(dim) + " with size " +
         std::to_string(size));
  return index < 0 ? index + size : index;
}

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

namespace {

/// The offset of every index into some dimensions, in row-major order.
std::vector<std::int64_t> offsets_of(const Sizes& sizes, const Sizes& strides) {
  std::vector<std::int64_t> offsets = {0};
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    std::vector<std::int64_t> next;
    next.reserve(offsets.size() * static_cast<std::size_t>(sizes[d]));
    for (auto base : offsets)
      for (std::int64_t i = 0; i < sizes[d]; ++i) next.push_back(base + i * strides[d]);
    offsets = std::move(next);
  }
  return offsets;
}

}  // namespace

Indexing index_of(const Tensor& self, const std::vector<const Tensor*>& indices) {
  std::vector<Tensor> expanded;  // a tensor without storage means a whole dimension
  for (const Tensor* index : indices) {
    if (!index) {
      expanded.emplace_back();
      continue;
    }
    if (index->dtype != DType::Bool && index->dtype != DType::UInt8) {
      expanded.push_back(*index);
      continue;
    }
    Tensor positions = nonzero(*index);
    for (std::size_t d = 0; d < index->sizes.size(); ++d) {
      std::size_t at = expanded.size();
      if (at >= self.sizes.size() || index->sizes[d] != self.sizes[at])
        fail("The shape of the mask at index " + std::to_string(d) +
             " does not match the shape of the indexed tensor at index " + std::to_string(at));
      expanded.push_back(positions.view_as({positions.sizes[0]}, {positions.strides[0]},
                                           positions.offset + static_cast<std::int64_t>(d)));
    }
  }
  if (expanded.size() > self.sizes.size())
    fail("too many indices for tensor of dimension " + std::to_string(self.dim()));
  expanded.resize(self.sizes.size());
  std::vector<const Tensor*> given;
  for (const Tensor& t : expanded)
    if (t.storage) given.push_back(&t);
  Operands common = broadcast_load(given, DType::Int64);

  Indexing out;
  out.replacement = common.sizes;
  out.replacement_offsets.assign(static_cast<std::size_t>(common.numel()), 0);
  Sizes before_strides, after_strides;
  std::size_t next = 0;
  int runs = 0;  // runs of adjacent indexed dimensions
  for (std::size_t d = 0; d < expanded.size(); ++d) {
    if (!expanded[d].storage) {
      (runs ? out.after : out.before).push_back(self.sizes[d]);
      (runs ? after_strides : before_strides).push_back(self.strides[d]);
      continue;
    }
    if (d == 0 || !expanded[d - 1].storage) ++runs;
    const auto* index = common.tensors[next++].as<std::int64_t>();
    for (std::size_t i = 0; i < out.replacement_offsets.size(); ++i)
      out.replacement_offsets[i] +=
          checked_index(index[i], self.sizes[d], static_cast<std::int64_t>(d)) * self.strides[d];
  }
  if (runs > 1) {
    out.after.insert(out.after.begin(), out.before.begin(), out.before.end());
    after_strides.insert(after_strides.begin(), before_strides.begin(), before_strides.end());
    out.before.clear();
    before_strides.clear();
  }
  out.before_offsets = offsets_of(out.before, before_strides);
  out.after_offsets = offsets_of(out.after, after_strides);
  return out;
}

}  // namespace partita::kernels
