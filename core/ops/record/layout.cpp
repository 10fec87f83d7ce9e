#include "core/ops/record/layout.h"

#include <algorithm>
#include <numeric>

#include "core/ops/record/call.h"

namespace partita {

namespace {

/// c10's is_channels_last_strides. `order` lists the dimensions from the innermost to the batch.
bool strides_follow(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides,
                    std::span<const std::size_t> order) {
  if (strides[1] == 0) return false;
  std::int64_t least = 0;
  for (std::size_t d : order) {
    if (sizes[d] == 0 || strides[d] < least) return false;
    // The strides of an [N, 1, 1, 1] tensor fit both formats; it counts as contiguous.
    if (d == 0 && least == strides[1]) return false;
    least = strides[d];
    if (sizes[d] > 1) least *= sizes[d];
  }
  return true;
}

std::optional<std::vector<std::int64_t>> hinted(const SymList& list, const ShapeEnv& shapes) {
  std::vector<std::int64_t> values;
  for (SymExpr e : list) {
    auto value = shapes.hint(e);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

SymList strides_in_order(const SymList& sizes, std::span<const std::size_t> fastest_first) {
  SymList strides(sizes.size());
  SymExpr step = 1;
  for (std::size_t d : fastest_first) {
    strides[d] = step;
    step = step * (sizes[d].is_int() ? SymExpr(std::max<std::int64_t>(sizes[d].as_int(), 1)) : sizes[d]);
  }
  return strides;
}

constexpr std::size_t order2d[] = {1, 3, 2, 0};
constexpr std::size_t order3d[] = {1, 4, 3, 2, 0};

}  // namespace

bool is_row_major(const TensorMeta& meta) {
  for (SymExpr s : meta.sizes)
    if (s.is(0)) return true;
  // The strides of a view are products of sizes n, those of an allocation products of Max(1, n), which is n for sizes
  // of inputs and stays as it is for integers.
  SymExpr expected = 1, allocated = 1, written = 1;
  for (std::size_t i = meta.dim(); i-- > 0;) {
    if (meta.sizes[i].is(1)) continue;
    if (meta.strides[i] != expected && meta.strides[i] != allocated && meta.strides[i] != written) return false;
    expected = expected * meta.sizes[i];
    allocated = allocated * at_least_one(meta.sizes[i]);
    written = written * sym_max(1, meta.sizes[i]);
  }
  return true;
}

MemoryFormat suggest_memory_format(const TensorMeta& meta, const ShapeEnv& shapes) {
  if (meta.dim() != 4 && meta.dim() != 5) return MemoryFormat::Contiguous;
  auto sizes = hinted(meta.sizes, shapes), strides = hinted(meta.strides, shapes);
  if (!sizes || !strides) return MemoryFormat::Contiguous;
  if (meta.dim() == 4 && strides_follow(*sizes, *strides, order2d)) return MemoryFormat::ChannelsLast;
  if (meta.dim() == 5 && strides_follow(*sizes, *strides, order3d)) return MemoryFormat::ChannelsLast3d;
  return MemoryFormat::Contiguous;
}

SymList strides_for(MemoryFormat format, const SymList& sizes) {
  if (format == MemoryFormat::ChannelsLast && sizes.size() == 4) return strides_in_order(sizes, order2d);
  if (format == MemoryFormat::ChannelsLast3d && sizes.size() == 5) return strides_in_order(sizes, order3d);
  return contiguous_strides(sizes);
}

TensorMeta new_like(const TensorMeta& like, SymList sizes, MemoryFormat format) {
  TensorMeta meta = TensorMeta::contiguous(like.dtype, std::move(sizes), like.device);
  meta.strides = strides_for(format, meta.sizes);
  return meta;
}

TensorMeta like_preserving(const TensorMeta& like, const ShapeEnv& shapes) {
  TensorMeta meta = new_like(like, like.sizes);
  auto sizes = hinted(like.sizes, shapes), strides = hinted(like.strides, shapes);
  if (!sizes || !strides || is_row_major(like)) return meta;
  // Dimensions from the innermost to the outermost, sorted as TensorIterator does: dimensions that are broadcast or
  // have equal strides keep their row-major order, and other dimensions are moved past them.
  std::vector<std::size_t> order(like.dim());
  std::iota(order.rbegin(), order.rend(), 0);
  // Negative: a comes before b; positive: after it; 0: nothing is said of the two.
  auto order_of = [&](std::size_t a, std::size_t b) {
    if ((*strides)[a] == 0 || (*strides)[b] == 0) return 0;
    if ((*strides)[a] != (*strides)[b]) return (*strides)[a] < (*strides)[b] ? -1 : 1;
    return (*sizes)[a] < (*sizes)[b] ? -1 : 0;
  };
  for (std::size_t i = 1; i < order.size(); ++i)
    for (std::size_t moving = i, j = i; j-- > 0;) {
      const int way = order_of(order[moving], order[j]);
      if (way > 0) break;
      if (way == 0) continue;
      std::swap(order[moving], order[j]);
      moving = j;
    }
  bool dense = true;
  std::int64_t expected = 1;
  for (std::size_t d : order) {
    if ((*sizes)[d] == 1) continue;
    dense = dense && (*strides)[d] == expected;
    expected *= (*sizes)[d];
  }
  meta.strides = dense ? like.strides : strides_in_order(like.sizes, order);
  return meta;
}

Meta row_major_self(FakeCall& call) {
  return new_like(call.tensor("self"), call.tensor("self").sizes);
}
Meta preserving_self(FakeCall& call) {
  return like_preserving(call.tensor("self"), call.shapes);
}

Meta meta_if(bool wanted, TensorMeta meta) {
  return wanted ? Meta(std::move(meta)) : Meta();
}

}  // namespace partita
