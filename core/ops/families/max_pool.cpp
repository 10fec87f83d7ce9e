// max_poolNd_with_indices, its gradient, and the composites max_pool1d/2d/3d.
#include <cmath>

#include "core/ops/families/lower_index.h"
#include "core/ops/families/lower_pool.h"
#include "core/ops/families/pool.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

template <std::size_t rank>
void lower_max_pool(LowerCall& call) {
  const LoweredTensor self = call.in("self");
  const Window w(call, self.sizes, rank);
  const DType dtype = self.dtype;
  if (!is_floating(dtype)) fail_unsupported("max pooling of " + std::string(torch_name(dtype)));
  // A dilated window may contain nothing but padding. Its index would lie outside of the plane, which the kernel
  // reports as an error.
  for (std::size_t axis = 0; axis < rank; ++axis)
    if (w.of.padding[axis] > 0 && w.of.dilation[axis] > 1)
      fail_unsupported("max pooling of dilated windows over padding");
  const LoweredTensor x = call.to.cast(self, opmath_dtype(dtype));
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
      SymExpr place = 0;
      for (std::size_t axis = 0; axis < rank; ++axis) place = place * w.size(axis) + at[at.size() - rank + axis];
      Scalar position = body.scalar(place);
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
}

using namespace kernels;

template <std::size_t rank>
Meta fake_max_pool(FakeCall& c) {
  return with_indices(pooled(c, c.tensor("self"), rank));
}

template <std::size_t rank>
Value eval_max_pool(EvalCall& c) {
  std::vector<Tensor> outputs = allocate_all(c, fake_max_pool<rank>);
  Cells cells = sliding_cells(pool_arguments(c, rank), c.tensor("self").sizes, outputs[0].sizes, rank);
  return max_of_cells(c, outputs[0].sizes, rank, [&](std::int64_t) -> const Cells& { return cells; });
}

/// max_pool_double_backward(grad, indices, rank): the elements of grad at the maxima, separately for each plane.
Arg max_pool_double_backward(const FormulaCall& f) {
  const TensorMeta& indices = f.tensor(1);
  auto rank = static_cast<std::size_t>(f.integer(2));
  if (indices.numel().is(0)) return f.build.call("aten.zeros_like.default", {f.args[0]});
  SymList flat(indices.sizes.begin(), indices.sizes.end() - static_cast<std::ptrdiff_t>(rank));
  flat.push_back(-1);
  MemoryFormat format = suggest_memory_format(indices, *f.build.graph.shapes);
  Arg dense = f.args[0];
  if (f.tensor(0).strides != strides_for(format, f.tensor(0).sizes))
    dense = f.build.call("aten.clone.default", {dense}, {{"memory_format", format}});
  return f("view(gather(reshape(dense, flat), -1, reshape(x1, flat)), sizes(x1))",
           {{"dense", dense}, {"flat", f.build.sizes(flat)}});
}

}  // namespace

void loops::give_at_indices(LowerCall& call, std::string_view name, std::size_t rank, bool adds, const char* error) {
  const LoweredTensor values = call.in(name), indices = call.in("indices");
  const SymList sizes = call.out_sizes(), sides(sizes.end() - static_cast<std::ptrdiff_t>(rank), sizes.end());
  const SymExpr plane = product(sides);
  const LoweredTensor zeros = call.to.constant(values.dtype, sizes, 0);
  if (!call.evaluates && (plane.is(0) || plane.is(1)))
    fail_unsupported("planes of one element, whose indices need not be read");
  if (plane.is(0)) return call.give(zeros);
  const Bound bound{call.to.origin, error, plane, false};
  const Put put{values.sizes, [values](Body& body, const Index& i) { return body.read(values, i); },
                [=](Body& body, const Index& i) {
                  SymExpr e = body.indirect(body.b.within(body.read(indices, i), bound), plane);
                  Index target = i;
                  for (std::size_t axis = rank; axis-- > 0;) {
                    const std::size_t d = i.size() - rank + axis;
                    target[d] = axis > 0 ? body.math.mod(e, sides[axis]) : e;
                    e = body.math.floordiv(e, sides[axis]);
                  }
                  return target;
                }};
  call.give(adds ? combined(call, zeros, put, {ScalarOp::Add}) : replaced(call, zeros, put));
}

void register_max_pool(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add_formula_functions({{"max_pool_double_backward", max_pool_double_backward}});
#define MAX_POOL(name, rank)                                                                                         \
  t.add("aten." name "_with_indices.default", fake_max_pool<rank>, eval_max_pool<rank>,                              \
        {{"self", "aten." name "_with_indices_backward.default(grad, self, kernel_size, stride, padding, dilation, " \
                  "ceil_mode, result1)"}},                                                                           \
        {.lower = lower_max_pool<rank>});                                                                            \
  t.add("aten." name "_with_indices_backward.default", fake_pool_backward, nullptr,                                  \
        {{"grad_output", "max_pool_double_backward(grad, indices, " #rank ")"}, {"self", "zeros_like(self)"}},       \
        {.lower = lower_max_pool_backward<rank>});                                                                   \
  t.add("aten." name ".default",                                                                                     \
        {.program = name "_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]"})
  MAX_POOL("max_pool2d", 2);
  MAX_POOL("max_pool3d", 3);
#undef MAX_POOL
  t.add("aten.max_pool1d.default",
        {.program =
             "p = aten.max_pool2d_with_indices.default(unsqueeze(self, -2), as_2d(kernel_size, 1), as_2d(stride, 1), "
             "as_2d(padding, 0), as_2d(dilation, 1), ceil_mode); "
             "aten.squeeze.dim(p[0], -2)"});
  t.add("aten.max_pool1d_with_indices.default",
        {.program =
             "p = aten.max_pool2d_with_indices.default(unsqueeze(self, -2), as_2d(kernel_size, 1), as_2d(stride, 1), "
             "as_2d(padding, 0), as_2d(dilation, 1), ceil_mode); "
             "values = aten.squeeze.dim(p[0], -2); "
             "(values, aten.squeeze.dim(p[1], -2))"});
}

}  // namespace partita
