#include <cmath>

#include "core/ops/families/pool.h"
#include "core/ops/lowerings.h"

namespace partita::loops {
namespace {

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

  std::int64_t height() const { return x.sizes[x.dim() - 2]; }
  std::int64_t width() const { return x.sizes[x.dim() - 1]; }

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
             std::int64_t size) const {
    SymExpr e = out * stride[axis] + (k * dilation[axis] - padding[axis]);
    auto [low, high] = body.math.bounds(e);
    auto require = [&](Scalar condition) { inside = inside.id < 0 ? condition : body.b.BitAnd(inside, condition); };
    if (low < 0) require(body.less(-1, e));
    if (high >= size) require(body.less(e, size));
    if (low < 0) e = sym_max(e, 0);
    if (high >= size) e = sym_min(e, size - 1);
    at = e;
  }
};

}  // namespace

Status lower_max_pool2d(LowerCall& call) {
  Window w(call, "self");
  DType dtype = w.x.dtype;
  if (!is_floating(dtype)) fail_unsupported("max pooling of " + std::string(torch_name(dtype)));
  // A dilated window may contain nothing but padding. Its index would lie outside of the plane, which the kernel
  // reports as an error.
  for (std::size_t axis = 0; axis < 2; ++axis)
    if (w.padding[axis] > 0 && w.dilation[axis] > 1) fail_unsupported("max pooling of dilated windows over padding");
  LoweredTensor x = call.to.cast(w.x, arithmetic_dtype(dtype));
  auto element = [x](Body& body, const Index& at, Scalar inside) {
    Scalar v = body.read(x, at);
    return inside.id < 0 ? v : body.b.where(inside, v, body.b.constant(x.dtype, -INFINITY));
  };
  call.give(call.to.map(x.dtype, call.out_sizes(0), [=](Body& body, const Index& i) {
    Scalar best;
    w.each(body, i, [&](const Index& at, Scalar inside) {
      Scalar v = element(body, at, inside);
      best = best.id < 0 ? v : body.b.Max(best, v);
    });
    return best;
  }));
  call.give(call.to.map(DType::Int64, call.out_sizes(1), [=](Body& body, const Index& i) {
    ScalarBuilder& b = body.b;
    Scalar best, where;
    w.each(body, i, [&](const Index& at, Scalar inside) {
      Scalar v = element(body, at, inside);
      Scalar position = body.scalar(at[at.size() - 2] * w.width() + at[at.size() - 1]);
      if (best.id < 0) {
        best = v;
        where = position;
        return;
      }
      Scalar better = b.BitOr(b.Lt(best, v), b.IsNan(v));
      if (inside.id >= 0) better = b.BitAnd(better, inside);
      best = b.where(better, v, best);
      where = b.where(better, position, where);
    });
    return where;
  }));
  return {};
}

Status lower_max_pool2d_backward(LowerCall& call) {
  LoweredTensor grad = call.in("grad_output"), self = call.in("self"), indices = call.in("indices");
  std::int64_t width = self.sizes.back(), plane = width * self.sizes[self.dim() - 2];
  if (plane == 0) fail_unsupported("the gradient of pooling an empty tensor");
  Bound bound{call.to.origin, "a plane", plane, false};
  LoweredTensor zero = call.to.constant(grad.dtype, self.sizes, 0);
  Definition::Write fill{self.sizes, [zero](Body& body, const Index& i) { return body.read(zero, i); },
                         [](Body&, const Index& i) { return i; }};
  Definition::Write add{grad.sizes, [grad](Body& body, const Index& i) { return body.read(grad, i); },
                        [=](Body& body, const Index& i) {
                          ScalarBuilder& b = body.b;
                          Scalar at = body.read(indices, i);
                          SymExpr e = body.indirect(b.within(at, bound), plane);
                          Index target = i;
                          target[i.size() - 2] = body.math.floordiv(e, width);
                          target[i.size() - 1] = body.math.mod(e, width);
                          return target;
                        },
                        true, true};
  call.give(call.to.writes(grad.dtype, self.sizes, {std::move(fill), std::move(add)}));
  return {};
}

Status lower_avg_pool2d(LowerCall& call) {
  Window w(call, "self");
  bool padded = w.padding != Sizes{0, 0};
  if (call.boolean("ceil_mode") || (padded && !call.boolean("count_include_pad")))
    fail_unsupported("average pooling over windows of different sizes");
  if (!is_floating(w.x.dtype)) fail_unsupported("average pooling of " + std::string(torch_name(w.x.dtype)));
  double divisor = call.has("divisor_override") ? static_cast<double>(call.integer("divisor_override"))
                                                : static_cast<double>(w.kernel[0] * w.kernel[1]);
  LoweredTensor x = call.to.cast(w.x, arithmetic_dtype(w.x.dtype));
  call.give(call.to.map(x.dtype, call.out_sizes(), [=](Body& body, const Index& i) {
    Scalar sum;
    w.each(body, i, [&](const Index& at, Scalar inside) {
      Scalar v = body.read(x, at);
      if (inside.id >= 0) v = body.b.where(inside, v, body.b.constant(x.dtype, 0));
      sum = sum.id < 0 ? v : body.b.Add(sum, v);
    });
    return body.b.Div(sum, body.b.constant(x.dtype, divisor));
  }));
  return {};
}

namespace {

/// The size of the windows of an adaptive pooling; refused unless all windows have the same size.
Sizes equal_windows(const Sizes& in, const Sizes& out) {
  std::size_t r = in.size();
  Sizes window;
  for (std::size_t d = r - 2; d < r; ++d) {
    if (out[d] == 0 || in[d] == 0 || in[d] % out[d] != 0)
      fail_unsupported("adaptive pooling over windows of different sizes");
    window.push_back(in[d] / out[d]);
  }
  return window;
}

}  // namespace

Status lower_adaptive_avg_pool2d(LowerCall& call) {
  LoweredTensor self = call.in("self");
  if (!is_floating(self.dtype)) fail_unsupported("average pooling of " + std::string(torch_name(self.dtype)));
  Sizes out = call.out_sizes(), window = equal_windows(self.sizes, out);
  LoweredTensor x = call.to.cast(self, arithmetic_dtype(self.dtype));
  Sizes space(out.begin(), out.end() - 2);
  std::vector<bool> reduced(space.size(), false);
  for (std::size_t k = 0; k < 2; ++k) {
    space.push_back(out[out.size() - 2 + k]);
    space.push_back(window[k]);
    reduced.push_back(false);
    reduced.push_back(true);
  }
  LoweredTensor sum = call.to.reduce(x.dtype, space, reduced, ScalarOp::Add, [=](Body& body, const Index& i) {
    std::size_t r = i.size() - 4;
    Index at(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(r));
    at.push_back(i[r] * window[0] + i[r + 1]);
    at.push_back(i[r + 2] * window[1] + i[r + 3]);
    return body.read(x, at);
  });
  double n = static_cast<double>(window[0] * window[1]);
  call.give(pointwise(call.to, x.dtype, x.dtype, {sum},
                      [=](ScalarBuilder& b, auto v) { return b.Div(v[0], b.constant(b.dtype(v[0]), n)); }));
  return {};
}

Status lower_adaptive_avg_pool2d_backward(LowerCall& call) {
  LoweredTensor grad = call.in("grad_output"), self = call.in("self");
  Sizes window = equal_windows(self.sizes, grad.sizes);
  double n = static_cast<double>(window[0] * window[1]);
  DType compute = arithmetic_dtype(grad.dtype);
  call.give(call.to.map(compute, self.sizes, [=](Body& body, const Index& i) {
    Index at = i;
    at[i.size() - 2] = body.math.floordiv(i[i.size() - 2], window[0]);
    at[i.size() - 1] = body.math.floordiv(i[i.size() - 1], window[1]);
    return body.b.Div(body.b.cast(body.read(grad, at), compute), body.b.constant(compute, n));
  }));
  return {};
}

}  // namespace partita::loops
