// avg_pool2d/3d, their gradients, and the composite avg_pool1d.
#include "core/ops/families/lower_pool.h"
#include "core/ops/families/pool.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

/// A window of whose elements the mean is taken.
struct MeanWindow : Window {
  std::optional<std::int64_t> divisor_override;
  bool counts_padding;

  MeanWindow(LowerCall& call, SymList input, std::size_t rank)
      : Window(call, std::move(input), rank), counts_padding(call.boolean("count_include_pad")) {
    if (call.has("divisor_override")) divisor_override = call.integer("divisor_override");
  }

  /// The number that the sum over the window of output place i is divided by.
  Scalar divisor(Body& body, const Index& i, DType dtype) const {
    if (divisor_override) return body.b.constant(dtype, static_cast<double>(*divisor_override));
    SymExpr count = 1;
    for (std::size_t axis = 0; axis < rank(); ++axis) {
      const std::int64_t padding = counts_padding ? of.padding[axis] : 0;
      SymExpr first = start(axis, i[i.size() - rank() + axis]), end = first + of.kernel[axis];
      const SymExpr last = size(axis) + padding;
      if (!body.math.non_negative(first + padding)) first = sym_max(first, -padding);
      if (!body.math.non_negative(last - end)) end = sym_min(end, last);
      count = count * (end - first);
    }
    return body.b.cast(body.scalar(count), dtype);
  }
};

void require_floats(const LoweredTensor& x) {
  if (!is_floating(x.dtype)) fail_unsupported("average pooling of " + std::string(torch_name(x.dtype)));
}

template <std::size_t rank>
void lower_avg_pool(LowerCall& call) {
  require_floats(call.in("self"));
  const LoweredTensor x = call.to.cast(call.in("self"), opmath_dtype(call.in("self").dtype));
  const MeanWindow w(call, x.sizes, rank);
  call.give(call.to.map(x.dtype, call.out_sizes(), [=](Body& body, const Index& i) {
    Scalar sum;
    w.each(body, i, [&](const Index& at, Scalar inside) {
      Scalar v = body.read(x, at);
      if (inside.id >= 0) v = body.b.where(inside, v, body.b.constant(x.dtype, 0));
      sum = sum.id < 0 ? v : body.b.Add(sum, v);
    });
    return body.b.Div(sum, w.divisor(body, i, x.dtype));
  }));
}

/// Each element of the input adds up what the windows over it give: along an axis the last one that begins at or before
/// it, and those before that.
template <std::size_t rank>
void lower_avg_pool_backward(LowerCall& call) {
  const LoweredTensor self = call.in("self"), grad = call.in("grad_output");
  require_floats(grad);
  if (grad.dtype != call.out().dtype) fail_unsupported("a gradient of another dtype");
  const MeanWindow w(call, self.sizes, rank);
  const DType dtype = opmath_dtype(grad.dtype);
  Sizes windows;
  for (std::size_t axis = 0; axis < rank; ++axis)
    windows.push_back((w.of.kernel[axis] + w.of.stride[axis] - 1) / w.of.stride[axis]);
  call.give(call.to.map(dtype, self.sizes, [=](Body& body, const Index& i) {
    Scalar sum;
    each_place(windows, [&](const Sizes& back) {
      Index from = i;
      Scalar over;
      for (std::size_t axis = 0; axis < rank; ++axis) {
        const std::size_t d = i.size() - rank + axis;
        const SymExpr at = i[d] + w.of.padding[axis];
        const std::int64_t stride = w.of.stride[axis], before = back[axis] * stride;
        if (before + stride > w.of.kernel[axis]) {
          const Scalar reached = body.less(body.math.mod(at, stride), w.of.kernel[axis] - before);
          over = over.id < 0 ? reached : body.b.BitAnd(over, reached);
        }
        from[d] = placed(body, body.math.floordiv(at, stride) - back[axis], grad.sizes[d], over);
      }
      Scalar share = body.b.Div(body.b.cast(body.read(grad, from), dtype), w.divisor(body, from, dtype));
      if (over.id >= 0) share = body.b.where(over, share, body.b.constant(dtype, 0));
      sum = sum.id < 0 ? share : body.b.Add(sum, share);
    });
    return sum;
  }));
}

using namespace kernels;

template <std::size_t rank>
Meta fake_avg_pool(FakeCall& c) {
  TensorMeta out = pooled(c, c.tensor("self"), rank);
  return rank == 3 ? new_like(out, out.sizes) : out;  // PyTorch's kernel of volumes has no memory formats
}
template <std::size_t rank>
constexpr auto fake_avg_pool_backward = rank == 3 ? fake_volume_pool_backward : fake_pool_backward;

Divisor divisor(const EvalCall& c) {
  if (c.has("divisor_override")) return [by = c.integer("divisor_override")](const Cell&) { return by; };
  if (c.boolean("count_include_pad")) return &Cell::padded;
  return &Cell::count;
}

template <std::size_t rank>
Value eval_avg_pool(EvalCall& c) {
  Tensor y = zeros_for(c, fake_avg_pool<rank>), x = load(c.tensor("self"), y.dtype);
  return means_of_cells(x, y, sliding_cells(pool_arguments(c, rank), x.sizes, y.sizes, rank), divisor(c));
}

template <std::size_t rank>
Value eval_avg_pool_backward(EvalCall& c) {
  Tensor dx = zeros_for(c, fake_avg_pool_backward<rank>), grad = load(c.tensor("grad_output"), dx.dtype);
  return share_among_cells(grad, dx, sliding_cells(pool_arguments(c, rank), dx.sizes, grad.sizes, rank), divisor(c));
}

}  // namespace

void register_avg_pool(OpTable& t) {
  t.default_family = Family::Reduction;
#define ARGUMENTS "kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)"
#define AVG_POOL(name, rank)                                                                          \
  t.add("aten." name ".default", fake_avg_pool<rank>, eval_avg_pool<rank>,                            \
        {{"self", name "_backward(grad, self, " ARGUMENTS}}, {.lower = lower_avg_pool<rank>});        \
  t.add("aten." name "_backward.default", fake_avg_pool_backward<rank>, eval_avg_pool_backward<rank>, \
        {{"grad_output", name "(grad, " ARGUMENTS}, {"self", "zeros_like(self)"}},                    \
        {.lower = lower_avg_pool_backward<rank>})
  AVG_POOL("avg_pool2d", 2);
  AVG_POOL("avg_pool3d", 3);
#undef AVG_POOL
#undef ARGUMENTS
  t.add("aten.avg_pool1d.default",
        {.program =
             "x = unsqueeze(self, -2); "
             "y = aten.avg_pool2d.default(x, as_2d(kernel_size, 1), as_2d(stride, 1), as_2d(padding, 0), ceil_mode, "
             "count_include_pad); "
             "aten.squeeze.dim(y, -2)"});
}

}  // namespace partita
