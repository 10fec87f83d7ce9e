// Formula functions of pooling, embedding and loss operators, after PyTorch's FunctionsManual.cpp.
#include "core/ops/formula_functions.h"
#include "core/ops/layout.h"

namespace partita {
namespace {

/// last_sizes(x, n): the last n sizes.
Arg last_sizes(const FormulaCall& f) {
  const SymList& sizes = f.tensor(0).sizes;
  return f.build.sizes(SymList(sizes.end() - *f.args[1].get<std::int64_t>(), sizes.end()));
}

/// max_pool_double_backward(grad, indices, rank): what grad holds where the maxima were, plane by plane.
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

constexpr FormulaFunction functions[] = {
    {"last_sizes", last_sizes},
    {"max_pool_double_backward", max_pool_double_backward},
};

}  // namespace

std::span<const FormulaFunction> nn_formula_functions() {
  return functions;
}

}  // namespace partita
