// Adaptive pooling: output cell i covers the inputs from floor(i * in / out) to ceil((i + 1) * in / out).
#include "core/ops/families/lower_pool.h"
#include "core/ops/families/pool.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

/// The size of the windows of an adaptive pooling over the last two dimensions; refused unless all windows have the
/// same size.
SymList equal_windows(const LowerCall& call, const SymList& in, const SymList& out) {
  SymList window;
  for (std::size_t d = in.size() - 2; d < in.size(); ++d) {
    if (out[d].is(0) || in[d].is(0) || !call.test(sym_eq(sym_mod(in[d], out[d]), 0), "equal windows"))
      fail_unsupported("adaptive pooling over windows of different sizes");
    window.push_back(sym_floordiv(in[d], out[d]));
  }
  return window;
}

void lower_adaptive_avg_pool2d(LowerCall& call) {
  LoweredTensor self = call.in("self");
  if (!is_floating(self.dtype)) fail_unsupported("average pooling of " + std::string(torch_name(self.dtype)));
  const SymList out = call.out_sizes(), window = equal_windows(call, self.sizes, out);
  LoweredTensor x = call.to.cast(self, opmath_dtype(self.dtype));
  SymList space(out.begin(), out.end() - 2);
  std::vector<bool> reduced(space.size(), false);
  for (std::size_t k = 0; k < 2; ++k) {
    space.push_back(out[out.size() - 2 + k]);
    space.push_back(window[k]);
    reduced.push_back(false);
    reduced.push_back(true);
  }
  LoweredTensor sum =
      call.to.reduce(x.dtype, call.to.plain(space), reduced, ScalarOp::Add, [=](Body& body, const Index& i) {
        std::size_t r = i.size() - 4;
        Index at(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(r));
        at.push_back(i[r] * window[0] + i[r + 1]);
        at.push_back(i[r + 2] * window[1] + i[r + 3]);
        return body.read(x, at);
      });
  call.give(pointwise(call.to, x.dtype, x.dtype, {sum}, [=](ScalarBuilder& b, auto v) {
    return b.Div(v[0], b.count(b.dtype(v[0]), window[0] * window[1]));
  }));
}

void lower_adaptive_avg_pool2d_backward(LowerCall& call) {
  LoweredTensor grad = call.in("grad_output"), self = call.in("self");
  const SymList window = call.to.plain(equal_windows(call, self.sizes, grad.sizes));
  DType compute = opmath_dtype(grad.dtype);
  call.give(call.to.map(compute, self.sizes, [=](Body& body, const Index& i) {
    Index at = i;
    at[i.size() - 2] = body.math.floordiv(i[i.size() - 2], window[0]);
    at[i.size() - 1] = body.math.floordiv(i[i.size() - 1], window[1]);
    return body.b.Div(body.b.cast(body.read(grad, at), compute), body.b.count(compute, window[0] * window[1]));
  }));
}

using namespace kernels;

/// The dimensions from `filled` on must have elements.
template <std::size_t rank>
TensorMeta adaptive(FakeCall& c, const std::string& kind, std::size_t filled) {
  const TensorMeta& self = c.tensor("self");
  SymList output = c.syms("output_size");
  if (output.size() == 1) output.resize(rank, output[0]);
  if (self.dim() != rank + 1 && self.dim() != rank + 2)
    fail("adaptive_pool" + std::to_string(rank) + "d: Expected " + std::to_string(rank + 1) + "D or " +
         std::to_string(rank + 2) + "D tensor, but got " + std::to_string(self.dim()) + "D");
  if (output.size() != rank)
    fail("adaptive_pool" + std::to_string(rank) + "d: output_size must be " + std::to_string(rank));
  SymList sizes = self.sizes;
  for (std::size_t d = filled; d < sizes.size(); ++d)
    if (!checked(c, sym_lt(0, sizes[d]), "cells of something"))
      fail("adaptive_" + kind + "_pool" + std::to_string(rank) +
           "d(): Expected input to have non-zero size for non-batch dimensions, but dimension " + std::to_string(d) +
           " is empty");
  std::copy(output.begin(), output.end(), sizes.end() - rank);
  // PyTorch's kernels of volumes have no memory formats.
  return new_like(self, sizes, rank == 3 ? MemoryFormat::Contiguous : suggest_memory_format(self, c.shapes));
}
template <std::size_t rank>
Meta fake_adaptive_backward(FakeCall& c) {
  check_planes(c, rank);
  return rank == 3 ? fake_volume_pool_backward(c) : fake_pool_backward(c);
}

/// PyTorch has these kernels, which it names in its error, for floating dtypes only.
void check_floating(const TensorMeta& self, const std::string& kernel) {
  if (!is_floating(self.dtype))
    fail("\"" + kernel + "\" not implemented for '" + std::string(torch_name(self.dtype)) + "'");
}

template <std::size_t rank>
Meta fake_adaptive_avg(FakeCall& c) {
  if (rank == 3) check_floating(c.tensor("self"), "adaptive_avg_pool3d_cpu");
  return adaptive<rank>(c, "avg", c.tensor("self").dim() - rank);
}

template <std::size_t rank>
Meta fake_adaptive_max(FakeCall& c) {
  check_floating(c.tensor("self"), rank == 3 ? "adaptive_max_pool3d_cpu" : "adaptive_max_pool2d");
  return with_indices(adaptive<rank>(c, "max", 1));
}

template <std::size_t rank>
Value eval_adaptive_avg(EvalCall& c) {
  Tensor y = zeros_for(c, fake_adaptive_avg<rank>), x = load(c.tensor("self"), y.dtype);
  if (y.numel() == 0) return y;  // its cells may be too many to list
  return means_of_cells(x, y, adaptive_cells(x.sizes, y.sizes, rank), &Cell::count);
}

template <std::size_t rank>
Value eval_adaptive_avg_backward(EvalCall& c) {
  Tensor dx = zeros_for(c, fake_adaptive_backward<rank>), grad = load(c.tensor("grad_output"), dx.dtype);
  return share_among_cells(grad, dx, adaptive_cells(dx.sizes, grad.sizes, rank), &Cell::count);
}

template <std::size_t rank>
Value eval_adaptive_max(EvalCall& c) {
  std::vector<Tensor> outputs = allocate_all(c, fake_adaptive_max<rank>);
  if (outputs[0].numel() == 0) return ValueList(outputs.begin(), outputs.end());
  Cells cells = adaptive_cells(c.tensor("self").sizes, outputs[0].sizes, rank);
  return max_of_cells(c, outputs[0].sizes, rank, [&](std::int64_t) -> const Cells& { return cells; });
}

/// Is the output one cell? PyTorch then takes the mean over the whole plane. A symbolic size gets a guard; one that
/// only values decide is taken for more.
bool is_one_cell(DecomposeCall& c, const SymList& output) {
  return std::ranges::all_of(output, [&](SymExpr size) {
    const auto one = c.build.graph.shapes->evaluate(sym_eq(size, 1), "one cell of adaptive pooling");
    return one && *one;
  });
}

Arg decompose_adaptive_avg_pool2d(DecomposeCall& c) {
  Builder& b = c.build;
  SymList output = c.syms("output_size");
  if (output.size() == 1) output.resize(2, output[0]);
  if (output.size() != 2) fail("adaptive_avg_pool2d: output_size must be 2");
  if (is_one_cell(c, output)) {
    const TensorMeta& self = c.tensor("self");
    Node* mean = b.call("aten.mean.dim", {c.arg("self"), Arg::list({-1, -2}), true});
    if (suggest_memory_format(self, c.shapes) != MemoryFormat::ChannelsLast) return mean;
    SymExpr n = self.sizes[0], k = self.sizes[1];
    return b.call("aten.as_strided.default", {mean, b.sizes({n, k, 1, 1}), b.sizes({k, 1, k, k})});
  }
  return b.call("aten._adaptive_avg_pool2d.default", {c.arg("self"), b.sizes(output)});
}

Arg decompose_adaptive_avg_pool3d(DecomposeCall& c) {
  Builder& b = c.build;
  SymList output = c.syms("output_size");
  if (output.size() == 1) output.resize(3, output[0]);
  if (output.size() != 3) fail("adaptive_avg_pool3d: output_size must be 3");
  if (is_one_cell(c, output)) return b.call("aten.mean.dim", {c.arg("self"), Arg::list({-1, -2, -3}), true});
  return b.call("aten._adaptive_avg_pool3d.default", {c.arg("self"), b.sizes(output)});
}

}  // namespace

void register_adaptive_pool(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add("aten._adaptive_avg_pool2d.default", fake_adaptive_avg<2>, eval_adaptive_avg<2>,
        {{"self", "_adaptive_avg_pool2d_backward(grad, self)"}}, {.lower = lower_adaptive_avg_pool2d});
  t.add("aten._adaptive_avg_pool3d.default", fake_adaptive_avg<3>, eval_adaptive_avg<3>,
        {{"self", "_adaptive_avg_pool3d_backward(grad, self)"}});
  t.add("aten._adaptive_avg_pool2d_backward.default", fake_adaptive_backward<2>, eval_adaptive_avg_backward<2>,
        {{"grad_output", "_adaptive_avg_pool2d(grad, last_sizes(grad_output, 2))"}, {"self", "zeros_like(self)"}},
        {.lower = lower_adaptive_avg_pool2d_backward});
  t.add("aten._adaptive_avg_pool3d_backward.default", fake_adaptive_backward<3>, eval_adaptive_avg_backward<3>,
        {{"grad_output", "_adaptive_avg_pool3d(grad, last_sizes(grad_output, 3))"}, {"self", "zeros_like(self)"}});
  t.add("aten.adaptive_max_pool2d.default", fake_adaptive_max<2>, eval_adaptive_max<2>,
        {{"self", "adaptive_max_pool2d_backward(grad, self, result1)"}});
  t.add("aten.adaptive_max_pool3d.default", fake_adaptive_max<3>, eval_adaptive_max<3>,
        {{"self", "adaptive_max_pool3d_backward(grad, self, result1)"}});
  t.add("aten.adaptive_max_pool2d_backward.default", fake_adaptive_backward<2>, nullptr,
        {{"grad_output", "max_pool_double_backward(grad, indices, 2)"}, {"self", "zeros_like(self)"}},
        {.lower = lower_max_pool_backward<2>});
  t.add("aten.adaptive_max_pool3d_backward.default", fake_adaptive_backward<3>, nullptr,
        {{"grad_output", "max_pool_double_backward(grad, indices, 3)"}, {"self", "zeros_like(self)"}},
        {.lower = lower_max_pool_backward<3>});
  t.add("aten.adaptive_avg_pool2d.default", {.decompose = decompose_adaptive_avg_pool2d});
  t.add("aten.adaptive_avg_pool3d.default", {.decompose = decompose_adaptive_avg_pool3d});
  t.add("aten.adaptive_avg_pool1d.default",
        {.program =
             "aten.squeeze.dim(aten.adaptive_avg_pool2d.default(unsqueeze(self, -2), as_2d(output_size, 1)), -2)"});
  t.add("aten.adaptive_max_pool1d.default",
        {.program = "p = aten.adaptive_max_pool2d.default(unsqueeze(self, -2), as_2d(output_size, 1)); "
                    "values = aten.squeeze.dim(p[0], -2); "
                    "(values, aten.squeeze.dim(p[1], -2))"});
}

}  // namespace partita
