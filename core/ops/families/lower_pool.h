#pragma once
// Lowerings of pooling share this.
#include <functional>
#include <numeric>

#include "core/ops/families/pool.h"
#include "core/ops/record/lower_call.h"

namespace partita::loops {

// Larger windows are not lowered, because windows are unrolled.
constexpr std::int64_t largest_window = 64;

/// e as a place in 0 .. size - 1; a condition is added to `inside` (an invalid Scalar: none yet) where it may be out of
/// that range.
inline SymExpr placed(Body& body, SymExpr e, SymExpr size, Scalar& inside) {
  const bool from = body.math.non_negative(e), below = body.math.non_negative(size - 1 - e);
  auto require = [&](Scalar condition) { inside = inside.id < 0 ? condition : body.b.BitAnd(inside, condition); };
  if (!from) require(body.less(-1, e));
  if (!below) require(body.less(e, size));
  if (!from) e = sym_max(e, 0);
  return below ? e : sym_min(e, size - 1);
}

/// The product of the sizes.
inline std::int64_t elements(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies());
}

/// Calls f(index) for the places in a box of these sizes, in row-major order.
void each_place(const Sizes& sizes, auto f) {
  for (std::int64_t n = 0, count = elements(sizes); n < count; ++n) {
    Sizes at(sizes.size());
    std::int64_t rest = n;
    for (std::size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) at[d] = rest % sizes[d];
    f(at);
  }
}

/// A window over the last `rank` dimensions of an input of these sizes.
struct Window {
  SymList input;
  PoolArguments of;

  Window(LowerCall& call, SymList input, std::size_t rank) : input(std::move(input)), of(pool_arguments(call, rank)) {
    if (elements(of.kernel) > largest_window) fail_unsupported("a pooling window of more than 64 elements");
  }

  std::size_t rank() const { return of.kernel.size(); }
  SymExpr size(std::size_t axis) const { return input[input.size() - rank() + axis]; }
  /// The first element of the window of this output place, before it is cut to the input.
  SymExpr start(std::size_t axis, SymExpr out) const { return out * of.stride[axis] - of.padding[axis]; }

  /// Calls f(index in the input, condition that it is inside) for each element of the window. The condition is an
  /// invalid Scalar when it always holds.
  void each(Body& body, const Index& i, auto f) const {
    each_place(of.kernel, [&](const Sizes& k) {
      Index at = i;
      Scalar inside;
      for (std::size_t axis = 0; axis < rank(); ++axis) {
        const std::size_t d = at.size() - rank() + axis;
        at[d] = placed(body, start(axis, i[d]) + k[axis] * of.dilation[axis], size(axis), inside);
      }
      f(at, inside);
    });
  }
};

/// The elements of argument `name`, in zeros: each at the place in its plane that `indices` gives, or their sum where
/// it `adds`. `error` is what a place beyond the plane's size says.
void give_at_indices(LowerCall& call, std::string_view name, std::size_t rank, bool adds, const char* error);
/// The gradient of maxima.
template <std::size_t rank>
void lower_max_pool_backward(LowerCall& call) {
  give_at_indices(call, "grad_output", rank, true, "index {} is out of bounds for a plane with size {}");
}

}  // namespace partita::loops
