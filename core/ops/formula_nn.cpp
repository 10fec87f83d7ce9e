// Formula functions of pooling, embedding and loss operators, as in PyTorch's FunctionsManual.cpp.
#include "core/ops/formula_functions.h"
#include "core/ops/layout.h"
#include "core/ops/promote.h"

namespace partita {
namespace {

/// last_sizes(x, n): the last n sizes.
Arg last_sizes(const FormulaCall& f) {
  const SymList& sizes = f.tensor(0).sizes;
  return f.build.sizes(SymList(sizes.end() - *f.args[1].get<std::int64_t>(), sizes.end()));
}

/// max_pool_double_backward(grad, indices, rank): the elements of grad at the maxima, separately for each plane.
Arg max_pool_double_backward(const FormulaCall& f) {
  const TensorMeta& indices = f.tensor(1);
  auto rank = static_cast<std::size_t>(*f.args[2].get<std::int64_t>());
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

/// One half of a dimension: the first, or the second.
Arg half(const FormulaCall& f, const Arg& x, const Arg& dim, bool second) {
  const SymList& sizes = Builder::tensor(x).sizes;
  std::size_t d = wrap_dim(*dim.get<std::int64_t>(), sizes.size());
  SymExpr length = sym_floordiv(sizes[d], 2), begin = second ? length : SymExpr(0);
  return f.build.call("aten.slice.Tensor", {x, dim, f.build.size(begin), f.build.size(begin + length)});
}

/// glu_double_backward_grad_output(grad, self, dim)
Arg glu_double_backward_grad_output(const FormulaCall& f) {
  SymList sizes = f.tensor(1).sizes;
  std::size_t dim = wrap_dim(*f.args[2].get<std::int64_t>(), sizes.size());
  sizes[dim] = sym_floordiv(sizes[dim], 2);
  Node* ones = f.build.call("aten.new_ones.default", {f.args[1], f.build.sizes(sizes)});
  Arg slopes = f("x0 * glu_backward(ones, x1, x2)", {{"ones", ones}});
  return f("a + b", {{"a", half(f, slopes, f.args[2], false)}, {"b", half(f, slopes, f.args[2], true)}});
}

/// glu_double_backward(grad, grad_output, self, dim)
Arg glu_double_backward(const FormulaCall& f) {
  const Arg& dim = f.args[3];
  Arg s = f("sigmoid(g)", {{"g", half(f, f.args[2], dim, true)}});
  Arg slope = f("s * (1 - s)", {{"s", s}});
  Arg by_value = half(f, f.args[0], dim, false), by_gate = half(f, f.args[0], dim, true);
  return f(
      "cat([gate * x1 * slope, gate * value * x1 * (slope * (1 - s) - s * slope) + first * x1 * slope], x3)",
      {{"s", s}, {"slope", slope}, {"first", by_value}, {"gate", by_gate}, {"value", half(f, f.args[2], dim, false)}});
}

constexpr FormulaFunction functions[] = {
    {"last_sizes", last_sizes},
    {"max_pool_double_backward", max_pool_double_backward},
    {"glu_double_backward_grad_output", glu_double_backward_grad_output},
    {"glu_double_backward", glu_double_backward},
};

}  // namespace

std::span<const FormulaFunction> nn_formula_functions() {
  return functions;
}

}  // namespace partita
