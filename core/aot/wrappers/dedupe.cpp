#include <algorithm>

#include "core/aot/wrapper.h"

namespace partita {

std::optional<DedupeWrapper> DedupeWrapper::pre_compile(Graph& graph, GraphInputs& inputs) {
  DedupeWrapper w;
  for (std::size_t i = 0; i < inputs.values.size(); ++i) w.at.push_back(i);
  const std::vector<Node*> nodes = graph.placeholders();
  const std::size_t all = nodes.size();
  for (std::size_t i = inputs.values.size(); i-- > 0;) {
    const auto kept = static_cast<std::size_t>(std::ranges::find(inputs.keys, inputs.memory[i]) - inputs.keys.begin());
    if (kept >= i || !inputs.values[i].get<Tensor>()) continue;
    nodes[i]->replace_all_uses_with(nodes[kept]);
    graph.erase(nodes[i]);
    inputs.drop(i, kept, w.at);
  }
  if (inputs.values.size() == all) return std::nullopt;
  return w;
}

BoxedFn DedupeWrapper::post_compile(BoxedFn inner) const {
  return [at = at, inner = std::move(inner)](std::vector<Value>& inputs) -> Result<std::vector<Value>> {
    std::vector<Value> kept(*std::ranges::max_element(at) + 1);
    for (std::size_t i = at.size(); i-- > 0;) kept[at[i]] = std::exchange(inputs[i], {});
    TRY(std::vector<Value> outputs, inner(kept));
    for (std::size_t i = 0; i < at.size(); ++i) inputs[i] = kept[at[i]];
    return outputs;
  };
}

}  // namespace partita
