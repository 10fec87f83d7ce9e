// avg_pool2d/3d, their gradients, and the composite avg_pool1d.
#include "core/ops/families/lower_pool.h"
#include "core/ops/families/pool.h"
#include "core/ops/gradients.h"
#include "core/ops/kernels/accumulate_type.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/kernels/wrapping.h"
#include "core/ops/layout.h"
#include "core/ops/lower_call.h"
#include "core/ops/promote.h"

namespace partita {
namespace {
using namespace loops;

void lower_avg_pool2d(LowerCall& call) {
  Window w(call, "self");
  bool padded = w.padding != Sizes{0, 0};
  if (call.boolean("ceil_mode") || (padded && !call.boolean("count_include_pad")))
    fail_unsupported("average pooling over windows of different sizes");
  if (!is_floating(w.x.dtype)) fail_unsupported("average pooling of " + std::string(torch_name(w.x.dtype)));
  double divisor = call.has("divisor_override") ? static_cast<double>(call.integer("divisor_override"))
                                                : static_cast<double>(w.kernel[0] * w.kernel[1]);
  LoweredTensor x = call.to.cast(w.x, opmath_dtype(w.x.dtype));
  call.give(call.to.map(x.dtype, call.out_sizes(), [=](Body& body, const Index& i) {
    Scalar sum;
    w.each(body, i, [&](const Index& at, Scalar inside) {
      Scalar v = body.read(x, at);
      if (inside.id >= 0) v = body.b.where(inside, v, body.b.constant(x.dtype, 0));
      sum = sum.id < 0 ? v : body.b.Add(sum, v);
    });
    return body.b.Div(sum, body.b.constant(x.dtype, divisor));
  }));
}

using namespace kernels;

template <std::size_t rank>
Meta fake_avg_pool(FakeCall& c) {
  return pooled(c, c.tensor("self"), rank);
}

/// The number that the sum over a cell is divided by.
std::function<std::int64_t(const Cell&)> divisor(const EvalCall& c) {
  if (c.has("divisor_override")) return [by = c.integer("divisor_override")](const Cell&) { return by; };
  if (c.boolean("count_include_pad")) return &Cell::padded;
  return &Cell::count;
}

template <std::size_t rank>
Value eval_avg_pool(EvalCall& c) {
  Tensor out = allocate(c, fake_avg_pool<rank>);
  DType dtype = evaluation_dtype(out.dtype);
  Tensor x = load(c.tensor("self"), dtype), y = empty(dtype, out.sizes);
  Cells cells = sliding_cells(pool_arguments(c, rank), x.sizes, y.sizes, rank);
  auto divisor_of = divisor(c);
  dispatch_ordered(dtype, "avg_pool", [&]<class T>() {
    for (std::int64_t p : steps(cells.planes, 4096)) {
      const T* in = x.as<T>() + p * cells.in_plane();
      cells.each([&](std::int64_t position, const Cell& cell) {
        AccumulateType<T> sum = 0;
        cells.inputs(cell, [&](std::int64_t i) { sum = wrapping_sum(sum, static_cast<AccumulateType<T>>(in[i])); });
        y.as<T>()[p * cells.out_plane() + position] =
            sum == 0 ? T(0) : static_cast<T>(sum / static_cast<AccumulateType<T>>(divisor_of(cell)));
      });
    }
  });
  return with_elements(out, y);
}

template <std::size_t rank>
Value eval_avg_pool_backward(EvalCall& c) {
  Tensor out = allocate(c, fake_pool_backward);
  DType dtype = evaluation_dtype(out.dtype);
  Tensor grad = load(c.tensor("grad_output"), dtype), dx = zeros(dtype, out.sizes);
  check_planes(grad, dx, rank);
  Cells cells = sliding_cells(pool_arguments(c, rank), dx.sizes, grad.sizes, rank);
  auto divisor_of = divisor(c);
  dispatch_floating(dtype, "avg_pool_backward", [&]<class T>() {
    for (std::int64_t p : steps(cells.planes, 4096))
      cells.each([&](std::int64_t position, const Cell& cell) {
        const T share = grad.as<T>()[p * cells.out_plane() + position] / static_cast<T>(divisor_of(cell));
        cells.inputs(cell, [&](std::int64_t i) { dx.as<T>()[p * cells.in_plane() + i] += share; });
      });
  });
  return with_elements(out, dx);
}

constexpr char gradient_2d[] =
    "avg_pool2d_backward(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)";
constexpr char gradient_3d[] =
    "avg_pool3d_backward(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)";

constexpr char gradient_of_gradient_2d[] =
    "avg_pool2d(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)";
constexpr char gradient_of_gradient_3d[] =
    "avg_pool3d(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)";

}  // namespace

void register_avg_pool(OpTable& t) {
  t.add("aten.avg_pool2d.default", fake_avg_pool<2>, eval_avg_pool<2>, {{"self", gradient_2d}},
        {.lower = lower_avg_pool2d});
  t.add("aten.avg_pool3d.default", fake_avg_pool<3>, eval_avg_pool<3>, {{"self", gradient_3d}});
  t.add("aten.avg_pool2d_backward.default", fake_pool_backward, eval_avg_pool_backward<2>,
        {{"grad_output", gradient_of_gradient_2d}, {"self", "zeros_like(self)"}});
  t.add("aten.avg_pool3d_backward.default", fake_pool_backward, eval_avg_pool_backward<3>,
        {{"grad_output", gradient_of_gradient_3d}, {"self", "zeros_like(self)"}});
  t.add("aten.avg_pool1d.default",
        {.program =
             "x = unsqueeze(self, -2); "
             "y = aten.avg_pool2d.default(x, as_2d(kernel_size, 1), as_2d(stride, 1), as_2d(padding, 0), ceil_mode, "
             "count_include_pad); "
             "aten.squeeze.dim(y, -2)"});
}

}  // namespace partita
