// avg_pool2d/3d, their gradients, and the composite avg_pool1d.
#include <algorithm>

#include "core/ops/families/pool.h"
#include "core/ops/gradients.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/layout.h"
#include "core/ops/lowerings.h"

namespace partita {

namespace {

using namespace kernels;

template <std::size_t rank>
Meta fake_avg_pool(FakeCall& c) {
  return pooled(c, c.tensor("self"), rank);
}

Meta fake_avg_pool_backward(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  return new_like(self, self.sizes, suggest_memory_format(self, c.shapes));
}

/// f(output position, first and last+1 of the window in each dimension, divisor) for every window of one plane.
template <class F>
void each_window(const Window& w, bool include_pad, std::int64_t divisor_override, F f) {
  std::int64_t position = 0, begin[3], end[3];
  std::int64_t at[3];
  for (at[0] = 0; at[0] < w.out[0]; ++at[0])
    for (at[1] = 0; at[1] < w.out[1]; ++at[1])
      for (at[2] = 0; at[2] < w.out[2]; ++at[2], ++position) {
        std::int64_t padded = 1, inside = 1;
        for (int i = 0; i < 3; ++i) {
          begin[i] = at[i] * w.stride[i] - w.padding[i];
          end[i] = std::min(begin[i] + w.kernel[i], w.in[i] + w.padding[i]);
          padded *= end[i] - begin[i];
          begin[i] = std::max<std::int64_t>(begin[i], 0);
          end[i] = std::min(end[i], w.in[i]);
          inside *= std::max<std::int64_t>(end[i] - begin[i], 0);
        }
        f(position, begin, end, divisor_override ? divisor_override : include_pad ? padded : inside);
      }
}

std::int64_t divisor_override(const EvalCall& c) {
  if (!c.has("divisor_override")) return 0;
  std::int64_t divisor = c.integer("divisor_override");
  if (divisor == 0) fail("divisor must be not zero");
  return divisor;
}

/// f(element of the plane) for every element in the window.
template <class F>
void each_element(const Window& w, const std::int64_t* begin, const std::int64_t* end, F f) {
  for (std::int64_t d = begin[0]; d < end[0]; ++d)
    for (std::int64_t h = begin[1]; h < end[1]; ++h)
      for (std::int64_t v = begin[2]; v < end[2]; ++v) f((d * w.in[1] + h) * w.in[2] + v);
}

template <std::size_t rank>
Value eval_avg_pool(EvalCall& c) {
  Tensor out = allocate(c, fake_avg_pool<rank>);
  DType dtype = arithmetic_dtype(out.dtype);
  Tensor x = load(c.tensor("self"), dtype), y = empty(dtype, out.sizes);
  Window w = window(pool_arguments(c, rank), x.sizes, y.sizes, rank);
  std::int64_t count = planes(x.sizes, rank), in_plane = count ? x.numel() / count : 0,
               out_plane = count ? y.numel() / count : 0;
  dispatch_ordered(dtype, "avg_pool", [&]<class T>() {
    for (std::int64_t p = 0; p < count; ++p)
      each_window(w, c.boolean("count_include_pad"), divisor_override(c),
                  [&](std::int64_t position, const std::int64_t* begin, const std::int64_t* end, std::int64_t divisor) {
                    T sum = 0;
                    each_element(w, begin, end, [&](std::int64_t i) { sum += x.as<T>()[p * in_plane + i]; });
                    y.as<T>()[p * out_plane + position] = sum == T(0) ? T(0) : sum / static_cast<T>(divisor);
                  });
  });
  out.copy_from(y);
  return out;
}

template <std::size_t rank>
Value eval_avg_pool_backward(EvalCall& c) {
  Tensor out = allocate(c, fake_avg_pool_backward);
  DType dtype = arithmetic_dtype(out.dtype);
  Tensor grad = load(c.tensor("grad_output"), dtype), dx = zeros(dtype, out.sizes);
  Window w = window(pool_arguments(c, rank), dx.sizes, grad.sizes, rank);
  std::int64_t count = planes(dx.sizes, rank), in_plane = count ? dx.numel() / count : 0,
               out_plane = count ? grad.numel() / count : 0;
  dispatch_floating(dtype, "avg_pool_backward", [&]<class T>() {
    for (std::int64_t p = 0; p < count; ++p)
      each_window(w, c.boolean("count_include_pad"), divisor_override(c),
                  [&](std::int64_t position, const std::int64_t* begin, const std::int64_t* end, std::int64_t divisor) {
                    T share = rounded(out.dtype, grad.as<T>()[p * out_plane + position] / static_cast<T>(divisor));
                    each_element(w, begin, end, [&](std::int64_t i) {
                      T& sum = dx.as<T>()[p * in_plane + i];
                      sum = rounded(out.dtype, sum + share);
                    });
                  });
  });
  out.copy_from(dx);
  return out;
}

Arg decompose_avg_pool1d(DecomposeCall& c) {
  auto pair = [&](const char* name, std::int64_t first) {
    Sizes values = c.integers(name);
    if (values.empty()) return Arg::list({});
    return Arg::list({Arg(first), Arg(values[0])});
  };
  Builder& b = c.build;
  Node* x = b.call("aten.unsqueeze.default", {c.arg("self"), -2});
  Node* y = b.call("aten.avg_pool2d.default", {x, pair("kernel_size", 1), pair("stride", 1), pair("padding", 0),
                                               c.arg("ceil_mode"), c.arg("count_include_pad")});
  return b.call("aten.squeeze.dim", {y, -2});
}

constexpr char gradient_2d[] =
    "avg_pool2d_backward(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)";
constexpr char gradient_3d[] =
    "avg_pool3d_backward(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)";

}  // namespace

void register_avg_pool(OpTable& t) {
  t.add("aten.avg_pool2d.default", {.fake = fake_avg_pool<2>,
                                    .eval = eval_avg_pool<2>,
                                    .derivative = {{"self", gradient_2d}},
                                    .lower = loops::lower_avg_pool2d});
  t.add("aten.avg_pool3d.default",
        {.fake = fake_avg_pool<3>, .eval = eval_avg_pool<3>, .derivative = {{"self", gradient_3d}}});
  t.add("aten.avg_pool2d_backward.default", {.fake = fake_avg_pool_backward, .eval = eval_avg_pool_backward<2>});
  t.add("aten.avg_pool3d_backward.default", {.fake = fake_avg_pool_backward, .eval = eval_avg_pool_backward<3>});
  t.add("aten.avg_pool1d.default", {.decompose = decompose_avg_pool1d});
}

}  // namespace partita
