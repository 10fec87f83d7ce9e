// max_poolNd_with_indices, its gradient, and the composites max_pool1d/2d/3d.
#include <cmath>

#include "core/ops/families/pool.h"
#include "core/ops/gradients.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/layout.h"
#include "core/ops/lowerings.h"

namespace partita {

namespace {

using namespace kernels;

template <std::size_t rank>
Meta fake_max_pool(FakeCall& c) {
  TensorMeta values = pooled(c, c.tensor("self"), rank), indices = values;
  indices.dtype = DType::Int64;
  return MetaTuple{{values, indices}};
}

Meta fake_max_pool_backward(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  return new_like(self, self.sizes, suggest_memory_format(self, c.shapes));
}

template <std::size_t rank>
Value eval_max_pool(EvalCall& c) {
  std::vector<Tensor> outputs = allocate_all(c, fake_max_pool<rank>);
  DType dtype = arithmetic_dtype(outputs[0].dtype);
  Tensor x = load(c.tensor("self"), dtype), y = empty(dtype, outputs[0].sizes), at = empty(DType::Int64, y.sizes);
  Window w = window(pool_arguments(c, rank), x.sizes, y.sizes, rank);
  std::int64_t in_plane = w.in[0] * w.in[1] * w.in[2], out_plane = w.out[0] * w.out[1] * w.out[2];
  dispatch_ordered(dtype, "max_pool", [&]<class T>() {
    for (std::int64_t p = 0; p < planes(x.sizes, rank); ++p) {
      const T* in = x.as<T>() + p * in_plane;
      std::int64_t position = p * out_plane;
      for (std::int64_t d = 0; d < w.out[0]; ++d)
        for (std::int64_t h = 0; h < w.out[1]; ++h)
          for (std::int64_t v = 0; v < w.out[2]; ++v, ++position) {
            std::int64_t best = -1;
            for (std::int64_t kd = 0; kd < w.kernel[0]; ++kd) {
              std::int64_t id = d * w.stride[0] - w.padding[0] + kd * w.dilation[0];
              if (id < 0 || id >= w.in[0]) continue;
              for (std::int64_t kh = 0; kh < w.kernel[1]; ++kh) {
                std::int64_t ih = h * w.stride[1] - w.padding[1] + kh * w.dilation[1];
                if (ih < 0 || ih >= w.in[1]) continue;
                for (std::int64_t kw = 0; kw < w.kernel[2]; ++kw) {
                  std::int64_t iw = v * w.stride[2] - w.padding[2] + kw * w.dilation[2];
                  if (iw < 0 || iw >= w.in[2]) continue;
                  std::int64_t i = (id * w.in[1] + ih) * w.in[2] + iw;
                  bool wins = best < 0 || in[i] > in[best];
                  if constexpr (std::is_floating_point_v<T>) wins = wins || std::isnan(in[i]);
                  if (wins) best = i;
                }
              }
            }
            y.as<T>()[position] = in[best];
            at.as<std::int64_t>()[position] = best;
          }
    }
  });
  outputs[0].copy_from(y);
  outputs[1].copy_from(at);
  return ValueList{outputs[0], outputs[1]};
}

template <std::size_t rank>
Value eval_max_pool_backward(EvalCall& c) {
  Tensor out = allocate(c, fake_max_pool_backward);
  DType dtype = arithmetic_dtype(out.dtype);
  Tensor grad = load(c.tensor("grad_output"), dtype), at = load(c.tensor("indices"), DType::Int64),
         dx = zeros(dtype, out.sizes);
  if (grad.sizes != at.sizes) fail("max_pool backward: grad_output and indices differ in shape");
  std::int64_t count = planes(dx.sizes, rank), in_plane = count ? dx.numel() / count : 0,
               out_plane = count ? grad.numel() / count : 0;
  dispatch_floating(dtype, "max_pool_backward", [&]<class T>() {
    for (std::int64_t p = 0; p < count; ++p)
      for (std::int64_t i = p * out_plane; i < (p + 1) * out_plane; ++i) {
        std::int64_t target = at.as<std::int64_t>()[i];
        if (target < 0 || target >= in_plane)
          fail("max_pool backward: index " + std::to_string(target) + " is out of range");
        T& sum = dx.as<T>()[p * in_plane + target];
        sum = rounded(out.dtype, sum + grad.as<T>()[i]);
      }
  });
  out.copy_from(dx);
  return out;
}

template <const char* backward>
std::vector<Node*> grad_max_pool(GradCall& c) {
  GradientSlots slots(c);
  if (c.grads[0])
    slots["self"] = c.build.call(backward, {c.grads[0], c.arg("self"), c.arg("kernel_size"), c.arg("stride"),
                                            c.arg("padding"), c.arg("dilation"), c.arg("ceil_mode"), c.results[1]});
  return slots;
}

constexpr char backward_2d[] = "aten.max_pool2d_with_indices_backward.default";
constexpr char backward_3d[] = "aten.max_pool3d_with_indices_backward.default";

Node* with_indices(DecomposeCall& c, const char* op) {
  return c.build.call(op, {c.arg("self"), c.arg("kernel_size"), c.arg("stride"), c.arg("padding"), c.arg("dilation"),
                           c.arg("ceil_mode")});
}

Arg decompose_max_pool2d(DecomposeCall& c) {
  return c.build.getitem(with_indices(c, "aten.max_pool2d_with_indices.default"), 0);
}
Arg decompose_max_pool3d(DecomposeCall& c) {
  return c.build.getitem(with_indices(c, "aten.max_pool3d_with_indices.default"), 0);
}

/// 1-d as 2-d with a height of 1.
Node* pool_as_2d(DecomposeCall& c) {
  auto pair = [&](const char* name, std::int64_t first) {
    Sizes values = c.integers(name);
    if (values.empty()) return Arg::list({});
    return Arg::list({Arg(first), Arg(values[0])});
  };
  Node* x = c.build.call("aten.unsqueeze.default", {c.arg("self"), -2});
  return c.build.call(
      "aten.max_pool2d_with_indices.default",
      {x, pair("kernel_size", 1), pair("stride", 1), pair("padding", 0), pair("dilation", 1), c.arg("ceil_mode")});
}

Arg decompose_max_pool1d(DecomposeCall& c) {
  return c.build.call("aten.squeeze.dim", {c.build.getitem(pool_as_2d(c), 0), -2});
}

Arg decompose_max_pool1d_with_indices(DecomposeCall& c) {
  Node* pool = pool_as_2d(c);
  auto flat = [&](std::int64_t i) { return c.build.call("aten.squeeze.dim", {c.build.getitem(pool, i), -2}); };
  Node* values = flat(0);
  return Arg::tuple({values, flat(1)});
}

}  // namespace

void register_max_pool(OpTable& t) {
  t.add("aten.max_pool2d_with_indices.default", {.fake = fake_max_pool<2>,
                                                 .eval = eval_max_pool<2>,
                                                 .gradient = grad_max_pool<backward_2d>,
                                                 .lower = loops::lower_max_pool2d});
  t.add("aten.max_pool3d_with_indices.default",
        {.fake = fake_max_pool<3>, .eval = eval_max_pool<3>, .gradient = grad_max_pool<backward_3d>});
  t.add(backward_2d,
        {.fake = fake_max_pool_backward, .eval = eval_max_pool_backward<2>, .lower = loops::lower_max_pool2d_backward});
  t.add(backward_3d, {.fake = fake_max_pool_backward, .eval = eval_max_pool_backward<3>});
  t.add("aten.max_pool1d.default", {.decompose = decompose_max_pool1d});
  t.add("aten.max_pool1d_with_indices.default", {.decompose = decompose_max_pool1d_with_indices});
  t.add("aten.max_pool2d.default", {.decompose = decompose_max_pool2d});
  t.add("aten.max_pool3d.default", {.decompose = decompose_max_pool3d});
}

}  // namespace partita
