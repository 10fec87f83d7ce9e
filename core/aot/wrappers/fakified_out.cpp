#include <algorithm>

#include "core/aot/wrapper.h"
#include "core/tensor/significant_strides.h"

namespace partita {

std::optional<FakifiedOutWrapper> FakifiedOutWrapper::pre_compile(const AotGraphs& graphs) {
  FakifiedOutWrapper w;
  const Graph& forward = *graphs.partition.forward;
  const std::vector<Arg> returned = forward.outputs();
  for (std::size_t i = 0; i < graphs.partition.forward_outputs && i < returned.size(); ++i) {
    const TensorMeta* meta = returned[i].node() ? returned[i].node()->meta.tensor() : nullptr;
    if (meta && meta->strides_known && meta->strides != contiguous_strides(meta->sizes))
      w.outputs.push_back({i, meta->strides});
  }
  if (w.outputs.empty()) return std::nullopt;
  w.shapes = InputShapes::of(forward);
  return w;
}

BoxedFn FakifiedOutWrapper::post_compile(BoxedFn inner) const {
  return [w = *this, inner = std::move(inner)](std::vector<Value>& inputs) -> Result<std::vector<Value>> {
    const SymbolMap symbols = w.shapes.bind(inputs);
    TRY(std::vector<Value> values, inner(inputs));
    for (const Output& o : w.outputs) {
      const Tensor* t = values[o.output].get<Tensor>();
      Sizes strides;
      for (SymExpr e : o.strides)
        if (const auto stride = symbols.value(e)) strides.push_back(*stride);
      // Strides by symbols that only the data decide are the backend's.
      if (!t || strides.size() != t->sizes.size() || same_significant_strides(t->sizes, strides, t->strides)) continue;
      if (std::ranges::find(strides, 0) != strides.end()) continue;  // expanded: elements would share memory
      TRY(Tensor laid_out, Tensor::empty_strided(t->dtype, t->sizes, strides));
      laid_out.copy_from(*t);
      values[o.output] = std::move(laid_out);
    }
    return values;
  };
}

}  // namespace partita
