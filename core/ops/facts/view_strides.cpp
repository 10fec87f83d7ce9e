#include "core/ops/facts/view_strides.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"

namespace partita {
namespace {

std::string text(const SymList& sizes) {
  std::vector<std::string> items;
  for (SymExpr s : sizes) items.push_back(s.str());
  return fmt::format("[{}]", fmt::join(items, ", "));
}

}  // namespace

SymList infer_size(const FakeCall& call, const SymList& shape, SymExpr numel) {
  SymExpr known = 1;
  std::optional<std::size_t> unknown;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (guard_or(call, sym_eq(shape[i], -1), false, "a size that is left out")) {
      if (unknown) fail("only one dimension can be inferred");
      unknown = i;
    } else if (shape[i].is_int() && shape[i].as_int() < 0) {
      fail(fmt::format("invalid shape dimension {}", shape[i].as_int()));
    } else {
      known = known * shape[i];
    }
  }
  SymList out = shape;
  auto refuse = [&] { fail(fmt::format("shape '{}' is invalid for input of size {}", text(shape), numel.str())); };
  if (unknown) {
    if (known.is(0))
      fail(
          fmt::format("cannot reshape tensor of 0 elements into shape {} because the unspecified dimension "
                      "size -1 can be any value and is ambiguous",
                      text(shape)));
    if (!checked_equal(call, sym_mod(numel, known), 0, "a view's sizes must divide its elements")) refuse();
    out[*unknown] = sym_floordiv(numel, known);
  } else if (!checked_equal(call, known, numel, "a view keeps the number of elements")) {
    refuse();
  }
  return out;
}

namespace {

constexpr const char* reason = "a view's strides";

/// at::detail::computeStride. Where a comparison depends on a size known only at run time it takes the general case, as
/// PyTorch does.
std::optional<SymList> chunked_strides(const FakeCall& call, const SymList& old_sizes, const SymList& old_strides,
                                       const SymList& new_sizes) {
  auto equal = [&](SymExpr a, SymExpr b) { return a == b || guard_or(call, sym_eq(a, b), false, reason); };
  auto less = [&](SymExpr a, SymExpr b) { return a != b && guard_or(call, sym_lt(a, b), true, reason); };
  SymList strides(new_sizes.size());
  std::size_t view_end = new_sizes.size();  // the strides of the dimensions from here on are known
  SymExpr base = old_strides.back(), tensor_numel = 1, view_numel = 1;
  for (std::size_t d = old_sizes.size(); d-- > 0;) {
    tensor_numel = tensor_numel * old_sizes[d];
    bool chunk_ends = d == 0 || (!equal(old_sizes[d - 1], 1) && !equal(old_strides[d - 1], tensor_numel * base));
    if (!chunk_ends) continue;
    while (view_end > 0 && (less(view_numel, tensor_numel) || equal(new_sizes[view_end - 1], 1))) {
      --view_end;
      strides[view_end] = view_numel * base;
      view_numel = view_numel * new_sizes[view_end];
    }
    if (!equal(view_numel, tensor_numel)) return std::nullopt;
    if (d > 0) {
      base = old_strides[d - 1];
      tensor_numel = view_numel = 1;
    }
  }
  if (view_end != 0) return std::nullopt;
  return strides;
}

/// The sizes and strides of a tensor while torch._refs.reshape changes one dimension after the other.
class Reshaping {
 public:
  Reshaping(const FakeCall& call, SymList sizes, SymList strides)
      : call_(call), sizes_(std::move(sizes)), strides_(std::move(strides)) {}

  std::optional<ViewGeometry> to(const SymList& shape) {
    std::size_t at = 0;
    for (SymExpr length : shape) {
      if (at >= sizes_.size()) {
        split(sizes_.size() - 1, sizes_.back());
      } else if (!equal(length, sizes_[at])) {
        SymExpr gathered = sizes_[at];
        std::size_t last = at;
        while (!equal(sym_mod(gathered, length), 0)) {
          if (++last >= sizes_.size()) return std::nullopt;
          gathered = gathered * sizes_[last];
        }
        if (last != at && !collapse(at, last)) return std::nullopt;
        if (!equal(gathered, length)) split(at, length);
      }
      ++at;
    }
    sizes_.resize(shape.size(), 1);  // the remaining dimensions have size 1
    strides_.resize(shape.size(), 1);
    return ViewGeometry{sizes_, strides_};
  }

 private:
  bool equal(SymExpr a, SymExpr b) { return a == b || call_.test(sym_eq(a, b), reason); }

  /// prims.split_dim.
  void split(std::size_t d, SymExpr outer) {
    const SymExpr inner = sym_floordiv(sizes_[d], outer);
    const auto at = static_cast<std::ptrdiff_t>(d);
    sizes_[d] = outer;
    sizes_.insert(sizes_.begin() + at + 1, inner);
    strides_.insert(strides_.begin() + at, strides_[d] * inner);
  }

  /// prims.collapse_view of the dimensions first to last. False when they cannot be merged to one.
  bool collapse(std::size_t first, std::size_t last) {
    SymExpr stride = strides_[last], length = sizes_[last];
    for (std::size_t d = last; d-- > first;) {
      if (!equal(sizes_[d], 1) && !equal(sizes_[d + 1], 1) && !equal(strides_[d], strides_[d + 1] * sizes_[d + 1]))
        return false;
      length = length * sizes_[d];
    }
    for (std::size_t d = last; d-- > first;)
      if (!equal(sizes_[d], 1) && strides_[d] != stride && call_.test(sym_lt(strides_[d], stride), reason))
        stride = strides_[d];
    const auto from = static_cast<std::ptrdiff_t>(first), to = static_cast<std::ptrdiff_t>(last);
    sizes_[last] = length;
    strides_[last] = stride;
    sizes_.erase(sizes_.begin() + from, sizes_.begin() + to);
    strides_.erase(strides_.begin() + from, strides_.begin() + to);
    return true;
  }

  const FakeCall& call_;
  SymList sizes_, strides_;
};

bool symbolic(const SymList& list) {
  return !concrete(list);
}

}  // namespace

std::optional<ViewGeometry> view_geometry(const FakeCall& call, const SymList& old_sizes, const SymList& old_strides,
                                          const SymList& new_sizes) {
  auto with = [&](std::optional<SymList> strides) {
    return strides ? std::optional(ViewGeometry{new_sizes, *std::move(strides)}) : std::nullopt;
  };
  if (old_sizes.empty()) return with(SymList(new_sizes.size(), 1));
  const bool by_expressions = symbolic(old_sizes) || symbolic(old_strides) || symbolic(new_sizes);
  if (product(old_sizes).is(0)) {
    if (old_sizes == new_sizes && !by_expressions) return with(old_strides);
    return with(contiguous_strides(new_sizes));
  }
  if (!by_expressions) return with(chunked_strides(call, old_sizes, old_strides, new_sizes));
  if (has_unbacked(call, old_sizes) || has_unbacked(call, old_strides) || has_unbacked(call, new_sizes)) {
    if (old_sizes == new_sizes) return with(old_strides);
    TensorMeta old;
    old.sizes = old_sizes;
    old.strides = old_strides;
    if (is_row_major(old)) return with(contiguous_strides(new_sizes));
    return with(chunked_strides(call, old_sizes, old_strides, new_sizes));
  }
  if (is_contiguous(call, old_sizes, old_strides)) {
    if (new_sizes.size() == 1 && old_sizes.size() > 1) return ViewGeometry{{product(old_sizes)}, {1}};
    if (new_sizes.size() == 2 && old_sizes.size() == 1) return with(SymList{new_sizes[1], 1});
  }
  return Reshaping(call, old_sizes, old_strides).to(new_sizes);
}

}  // namespace partita
