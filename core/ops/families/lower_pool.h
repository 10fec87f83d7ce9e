#pragma once
// Lowerings of pooling share this.
#include "core/ops/families/pool.h"
#include "core/ops/lower_call.h"

namespace partita::loops {

// Larger windows are not lowered, because windows are unrolled.
constexpr std::int64_t largest_window = 64;

/// A 2-d window over the last two dimensions.
struct Window {
  LoweredTensor x;
  Sizes kernel, stride, padding, dilation;

  Window(LowerCall& call, std::string_view self) : x(call.in(self)) {
    PoolArguments a = pool_arguments(call, 2);
    kernel = a.kernel, stride = a.stride, padding = a.padding, dilation = a.dilation;
    if (kernel[0] * kernel[1] > largest_window) fail_unsupported("a pooling window of more than 64 elements");
  }

  SymExpr height() const { return x.sizes[x.dim() - 2]; }
  SymExpr width() const { return x.sizes[x.dim() - 1]; }

  /// Calls f(index in x, condition that it is inside) for each element of the window. The condition is an invalid
  /// Scalar when it always holds.
  template <class F>
  void each(Body& body, const Index& i, F f) const {
    for (std::int64_t a = 0; a < kernel[0]; ++a)
      for (std::int64_t b = 0; b < kernel[1]; ++b) {
        Index at = i;
        Scalar inside;
        place(body, at[at.size() - 2], inside, i[i.size() - 2], 0, a, height());
        place(body, at[at.size() - 1], inside, i[i.size() - 1], 1, b, width());
        f(at, inside);
      }
  }

 private:
  void place(Body& body, SymExpr& at, Scalar& inside, SymExpr out, std::size_t axis, std::int64_t k,
             SymExpr size) const {
    SymExpr e = out * stride[axis] + (k * dilation[axis] - padding[axis]);
    const bool from = body.math.non_negative(e), below = body.math.non_negative(size - 1 - e);
    auto require = [&](Scalar condition) { inside = inside.id < 0 ? condition : body.b.BitAnd(inside, condition); };
    if (!from) require(body.less(-1, e));
    if (!below) require(body.less(e, size));
    if (!from) e = sym_max(e, 0);
    if (!below) e = sym_min(e, size - 1);
    at = e;
  }
};

}  // namespace partita::loops
