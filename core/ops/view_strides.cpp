#include "core/ops/view_strides.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
    if (shape[i].is(-1)) {
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
    if (!call.test(sym_eq(sym_mod(numel, known), 0), "a view's sizes must divide its elements")) refuse();
    out[*unknown] = sym_floordiv(numel, known);
  } else if (known != numel && !call.test(sym_eq(known, numel), "a view keeps the number of elements")) {
    refuse();
  }
  return out;
}

std::optional<SymList> view_strides(const FakeCall& call, const SymList& old_sizes, const SymList& old_strides,
                                    const SymList& new_sizes) {
  auto equal = [&](SymExpr a, SymExpr b) { return a == b || call.test(sym_eq(a, b), "a view's strides"); };
  auto less = [&](SymExpr a, SymExpr b) { return a != b && call.test(sym_lt(a, b), "a view's strides"); };
  if (old_sizes.empty()) return SymList(new_sizes.size(), 1);
  SymExpr numel = product(old_sizes);
  if (numel.is(0)) {
    if (old_sizes == new_sizes) return old_strides;
    return contiguous_strides(new_sizes);
  }
  SymList strides(new_sizes.size());
  std::size_t view_end = new_sizes.size();  // dimensions from here on have their strides
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

}  // namespace partita
