// Adaptive pooling: output cell i covers the inputs from floor(i * in / out) to ceil((i + 1) * in / out).
#include <fmt/format.h>

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

/// The size of the windows of an adaptive pooling over the last dimensions; refused unless all windows have the same
/// size.
SymList equal_windows(const LowerCall& call, const SymList& in, const SymList& out, std::size_t rank) {
  SymList window;
  for (std::size_t d = in.size() - rank; d < in.size(); ++d) {
    if (out[d].is(0) || in[d].is(0) || !call.test(sym_eq(sym_mod(in[d], out[d]), 0), "equal windows"))
      fail_unsupported("adaptive pooling over windows of different sizes");
    window.push_back(sym_floordiv(in[d], out[d]));
  }
  return window;
}

template <std::size_t rank>
void lower_adaptive_avg(LowerCall& call) {
  LoweredTensor self = call.in("self");
  if (!is_floating(self.dtype)) fail_unsupported("average pooling of " + std::string(torch_name(self.dtype)));
  const SymList out = call.out_sizes(), window = equal_windows(call, self.sizes, out, rank);
  LoweredTensor x = call.to.cast(self, opmath_dtype(self.dtype));
  SymList space(out.begin(), out.end() - rank);
  std::vector<bool> reduced(space.size(), false);
  for (std::size_t k = 0; k < rank; ++k) {
    space.push_back(out[out.size() - rank + k]);
    space.push_back(window[k]);
    reduced.push_back(false);
    reduced.push_back(true);
  }
  LoweredTensor sum =
      call.to.reduce(x.dtype, call.to.plain(space), reduced, ScalarOp::Add, [=](Body& body, const Index& i) {
        Index at(i.begin(), i.end() - 2 * rank);
        for (std::size_t k = 0, r = at.size(); k < rank; ++k) at.push_back(i[r + 2 * k] * window[k] + i[r + 2 * k + 1]);
        return body.read(x, at);
      });
  call.give(pointwise(call.to, x.dtype, x.dtype, {sum},
                      [=](ScalarBuilder& b, auto v) { return b.Div(v[0], b.count(b.dtype(v[0]), product(window))); }));
}

template <std::size_t rank>
void lower_adaptive_avg_backward(LowerCall& call) {
  LoweredTensor grad = call.in("grad_output"), self = call.in("self");
  const SymList window = call.to.plain(equal_windows(call, self.sizes, grad.sizes, rank));
  DType compute = opmath_dtype(grad.dtype);
  call.give(call.to.map(compute, self.sizes, [=](Body& body, const Index& i) {
    Index at = i;
    for (std::size_t k = 0, d = i.size() - rank; k < rank; ++k, ++d) at[d] = body.math.floordiv(i[d], window[k]);
    return body.b.Div(body.b.cast(body.read(grad, at), compute), body.b.count(compute, product(window)));
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

template <std::size_t rank>
Arg decompose_adaptive_avg(DecomposeCall& c) {
  Builder& b = c.build;
  SymList output = c.syms("output_size");
  if (output.size() == 1) output.resize(rank, output[0]);
  if (output.size() != rank) fail(fmt::format("adaptive_avg_pool{0}d: output_size must be {0}", rank));
  if (!is_one_cell(c, output))
    return b.call(fmt::format("aten._adaptive_avg_pool{}d.default", rank), {c.arg("self"), b.sizes(output)});
  const TensorMeta& self = c.tensor("self");
  const Arg dims = rank == 2 ? Arg::list({-1, -2}) : Arg::list({-1, -2, -3});
  Node* mean = b.call("aten.mean.dim", {c.arg("self"), dims, true});
  if (rank == 3 || suggest_memory_format(self, c.shapes) != MemoryFormat::ChannelsLast) return mean;
  SymExpr n = self.sizes[0], k = self.sizes[1];
  return b.call("aten.as_strided.default", {mean, b.sizes({n, k, 1, 1}), b.sizes({k, 1, k, k})});
}

}  // namespace

void register_adaptive_pool(OpTable& t) {
  t.default_family = Family::Reduction;
#define ADAPTIVE_POOL(avg, max, rank)                                                                          \
  t.add("aten._" avg ".default", fake_adaptive_avg<rank>, eval_adaptive_avg<rank>,                             \
        {{"self", "_" avg "_backward(grad, self)"}}, {.lower = lower_adaptive_avg<rank>});                     \
  t.add("aten._" avg "_backward.default", fake_adaptive_backward<rank>, eval_adaptive_avg_backward<rank>,      \
        {{"grad_output", "_" avg "(grad, last_sizes(grad_output, " #rank "))"}, {"self", "zeros_like(self)"}}, \
        {.lower = lower_adaptive_avg_backward<rank>});                                                         \
  t.add("aten." avg ".default", {.decompose = decompose_adaptive_avg<rank>});                                  \
  t.add("aten." max ".default", fake_adaptive_max<rank>, eval_adaptive_max<rank>,                              \
        {{"self", max "_backward(grad, self, result1)"}});                                                     \
  t.add("aten." max "_backward.default", fake_adaptive_backward<rank>, nullptr,                                \
        {{"grad_output", "max_pool_double_backward(grad, indices, " #rank ")"}, {"self", "zeros_like(self)"}}, \
        {.lower = lower_max_pool_backward<rank>})
  ADAPTIVE_POOL("adaptive_avg_pool2d", "adaptive_max_pool2d", 2);
  ADAPTIVE_POOL("adaptive_avg_pool3d", "adaptive_max_pool3d", 3);
#undef ADAPTIVE_POOL
  t.add("aten.adaptive_avg_pool1d.default",
        {.program =
             "aten.squeeze.dim(aten.adaptive_avg_pool2d.default(unsqueeze(self, -2), as_2d(output_size, 1)), -2)"});
  t.add("aten.adaptive_max_pool1d.default",
        {.program = "p = aten.adaptive_max_pool2d.default(unsqueeze(self, -2), as_2d(output_size, 1)); "
                    "values = aten.squeeze.dim(p[0], -2); "
                    "(values, aten.squeeze.dim(p[1], -2))"});
}

}  // namespace partita
