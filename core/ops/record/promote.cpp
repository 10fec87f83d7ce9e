// Type promotion, broadcasting and the strides of TensorIterator, on symbolic sizes. Comparisons of sizes take guards;
// where only a run decides, sizes count as different and as neither 0 nor 1.
#include "core/ops/record/promote.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/ops/python/python_ops.h"
#include "core/ops/record/guards.h"

namespace partita {
namespace {

/// The dtype is that of `higher`, unless `lower` is of a higher category (float over int, complex over float).
std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher || !lower) return higher ? higher : lower;
  if (is_complex(*higher)) return higher;
  if (is_floating(*higher)) return is_complex(*lower) ? complex_of(*higher) : higher;
  if (*higher == DType::Bool || is_floating(*lower) || is_complex(*lower)) return promote(*higher, *lower);
  return higher;
}

/// A size that only a run decides is taken as neither 0 nor 1 nor equal to another, as in PyTorch.
bool same(const FakeCall& call, SymExpr a, SymExpr b) {
  return a == b || guard_or(call, sym_eq(a, b), false, "sizes and strides are compared");
}
bool less(const FakeCall& call, SymExpr a, SymExpr b) {
  return guard_or(call, sym_lt(a, b), false, "dimensions are ordered by stride");
}
bool is_one(const FakeCall& call, SymExpr size) {
  return same(call, size, 1);
}

/// Whether the strides are dense when dimensions are laid out in `order`, innermost first. Dimensions of size 1 do not
/// count.
bool dense_in(const FakeCall& call, const SymList& sizes, const SymList& strides, std::span<const std::size_t> order) {
  SymExpr expected = 1;
  for (std::size_t d : order) {
    if (is_one(call, sizes[d])) continue;
    if (!same(call, strides[d], expected)) return false;
    expected = expected * sizes[d];
  }
  return true;
}

std::span<const std::size_t> channels_last_order(std::size_t rank) {
  static constexpr std::size_t plane[] = {1, 3, 2, 0}, volume[] = {1, 4, 3, 2, 0};
  if (rank == 4) return plane;
  if (rank == 5) return volume;
  return {};
}

bool is_empty(const FakeCall& call, const SymList& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [&](SymExpr s) { return same(call, s, 0); });
}

/// The order of dimensions in TensorIterator, innermost first.
std::vector<std::size_t> iteration_order(const FakeCall& call, const SymList& sizes, std::span<const SymList> strides) {
  std::size_t rank = sizes.size();
  std::vector<std::size_t> order(rank);
  for (std::size_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  // 1: dim0 is outside of dim1; -1: dim0 is inside of dim1; 0: undecided.
  auto compare = [&](std::size_t dim0, std::size_t dim1) {
    for (const SymList& s : strides) {
      SymExpr a = s[dim0], b = s[dim1];
      if (same(call, a, 0) || same(call, b, 0)) continue;
      if (a != b && less(call, a, b)) return -1;
      if (a != b && less(call, b, a)) return 1;
      if (sizes[dim0] != sizes[dim1] && less(call, sizes[dim1], sizes[dim0])) return 1;
    }
    return 0;
  };
  for (std::size_t i = 1; i < rank; ++i) {
    std::size_t moving = i;
    for (std::size_t j = i; j-- > 0;) {
      int c = compare(order[j], order[moving]);
      if (c > 0) {
        std::swap(order[j], order[moving]);
        moving = j;
      } else if (c < 0) {
        break;
      }
    }
  }
  return order;
}

}  // namespace

Operand Operand::of_number(const Node& number) {
  const bool real = number.meta.sym()->is_float();
  return {real ? DType::Float32 : gives_bool(number) ? DType::Bool : DType::Int64, Rank::Number};
}

DType result_type(std::span<const Operand> operands) {
  std::optional<DType> by_rank[3];
  for (const Operand& o : operands) {
    std::optional<DType>& slot = by_rank[static_cast<std::size_t>(o.rank)];
    slot = slot ? promote(*slot, o.dtype) : o.dtype;
  }
  auto type = combine(by_rank[0], combine(by_rank[1], by_rank[2]));
  CHECK(type, "result_type of nothing");
  return *type;
}

Promoted promote(Promotion kind, std::span<const Operand> operands) {
  DType type = result_type(operands);
  bool whole = is_integral(type) || type == DType::Bool;
  switch (kind) {
    case Promotion::Default:
    case Promotion::NoOpMath:
      return {type, opmath_dtype(type), type};
    case Promotion::IntToFloat: {
      if (whole) type = DType::Float32;
      return {type, opmath_dtype(type), type};
    }
    case Promotion::AlwaysBool:
      return {type, opmath_dtype(type), DType::Bool};
    case Promotion::ComplexToFloat:
      return {type, opmath_dtype(type), real_of(type)};
    case Promotion::BoolToLong: {
      if (type == DType::Bool) type = DType::Int64;
      return {type, opmath_dtype(type), type};
    }
  }
  CHECK(false, "promotion kind");
}

SymList broadcast(const FakeCall& call, std::span<const SymList> sizes) {
  std::size_t rank = 0;
  for (const SymList& s : sizes) rank = std::max(rank, s.size());
  SymList out(rank, 1);
  for (const SymList& s : sizes) {
    for (std::size_t i = 0; i < s.size(); ++i) {
      SymExpr& common = out[rank - s.size() + i];
      if (s[i] == common || s[i].is(1)) continue;
      // The common size is asked first, so that a size that happens to be 1 stays an expression where the others are 1.
      if (is_one(call, common)) {
        common = s[i];
      } else if (!is_one(call, s[i]) && !checked_equal(call, s[i], common, "sizes and strides are compared")) {
        fail(fmt::format("The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension {}",
                         common.str(), s[i].str(), rank - s.size() + i));
      }
    }
  }
  return out;
}

bool is_contiguous(const FakeCall& call, const SymList& sizes, const SymList& strides) {
  if (strides == contiguous_strides(sizes) || is_empty(call, sizes)) return true;
  std::vector<std::size_t> order(sizes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
  return dense_in(call, sizes, strides, order);
}

bool is_channels_last(const FakeCall& call, const SymList& sizes, const SymList& strides) {
  auto order = channels_last_order(sizes.size());
  return !order.empty() && !is_empty(call, sizes) && dense_in(call, sizes, strides, order);
}

bool is_non_overlapping_and_dense(const FakeCall& call, const SymList& sizes, const SymList& strides) {
  if (strides == contiguous_strides(sizes) || is_empty(call, sizes)) return true;
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (!is_one(call, sizes[d])) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return strides[a] != strides[b] && less(call, strides[a], strides[b]);
  });
  return dense_in(call, sizes, strides, order);
}

SymList channels_last_strides(const SymList& sizes) {
  SymList strides(sizes.size());
  SymExpr step = 1;
  for (std::size_t d : channels_last_order(sizes.size())) {
    strides[d] = step;
    step = step * (sizes[d].is(0) ? SymExpr(1) : sizes[d]);
  }
  return strides;
}

SymList elementwise_strides(const FakeCall& call, const SymList& sizes, std::span<const TensorMeta* const> operands) {
  std::vector<const TensorMeta*> tensors;
  bool same_size = true;
  for (const TensorMeta* t : operands) {
    if (t->dim() > sizes.size())
      fail(fmt::format("an operand of {} dimensions does not fit a result of {}", t->dim(), sizes.size()));
    same_size = same_size && t->sizes == sizes;
    if (!t->sizes.empty()) tensors.push_back(t);
  }
  if (same_size && !tensors.empty()) {
    auto all = [&](auto holds) {
      return std::all_of(tensors.begin(), tensors.end(), [&](auto* t) { return holds(*t); });
    };
    if (all([&](auto& t) { return is_contiguous(call, t.sizes, t.strides); })) return contiguous_strides(sizes);
    if (sizes.size() == 4 && all([&](auto& t) { return is_channels_last(call, t.sizes, t.strides); }))
      return channels_last_strides(sizes);
    if (all([&](auto& t) {
          return t.strides == tensors[0]->strides && is_non_overlapping_and_dense(call, t.sizes, t.strides);
        }))
      return tensors[0]->strides;
  }
  std::vector<SymList> strides;
  for (const TensorMeta* t : tensors) {
    SymList s(sizes.size(), 0);
    std::size_t lead = sizes.size() - t->sizes.size();
    for (std::size_t i = 0; i < t->sizes.size(); ++i)
      if (t->sizes[i] == sizes[lead + i] || !is_one(call, t->sizes[i])) s[lead + i] = t->strides[i];
    strides.push_back(std::move(s));
  }
  std::vector<std::size_t> order = iteration_order(call, sizes, strides);
  bool row_major = true;
  for (std::size_t i = 0; i < order.size(); ++i) row_major = row_major && order[i] == order.size() - 1 - i;
  if (row_major) return contiguous_strides(sizes);
  SymList out(sizes.size());
  SymExpr step = 1;
  for (std::size_t d : order) {
    out[d] = step;
    step = step * at_least_one(sizes[d]);
  }
  return out;
}

SymList strides_like(const FakeCall& call, const TensorMeta& self, const SymList& sizes, MemoryFormat format) {
  switch (format) {
    case MemoryFormat::Contiguous:
      return contiguous_strides(sizes);
    case MemoryFormat::ChannelsLast:
    case MemoryFormat::ChannelsLast3d: {
      std::size_t rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
      if (sizes.size() != rank) fail(fmt::format("required rank {} tensor to use channels_last format", rank));
      return channels_last_strides(sizes);
    }
    case MemoryFormat::Preserve:
      break;
  }
  if (is_non_overlapping_and_dense(call, self.sizes, self.strides)) return self.strides;
  const TensorMeta* operands[] = {&self};
  return elementwise_strides(call, sizes, operands);
}

std::size_t wrap_dim(std::int64_t dim, std::size_t rank) {
  auto n = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
  if (dim < -n || dim >= n)
    fail(fmt::format("Dimension out of range (expected to be in range of [{}, {}], but got {})", -n, n - 1, dim));
  return static_cast<std::size_t>(dim < 0 ? dim + n : dim);
}

}  // namespace partita
