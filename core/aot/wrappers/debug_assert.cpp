#include <fmt/format.h>

#include "core/aot/wrapper.h"
#include "core/base/config.h"

namespace partita {

std::optional<DebugAssertWrapper> DebugAssertWrapper::pre_compile(const AotGraphs& graphs) {
  // A joint graph that was given says nothing of what its inputs required.
  if (!config().verify || !graphs.train || graphs.meta.inputs.empty()) return std::nullopt;
  DebugAssertWrapper w;
  for (const InputBinding& b : graphs.inputs) w.requires_grad.push_back(b.requires_grad);
  return w;
}

BoxedFn DebugAssertWrapper::post_compile(BoxedFn inner) const {
  return [wants = requires_grad, inner = std::move(inner)](std::vector<Value>& inputs) -> Result<std::vector<Value>> {
    for (std::size_t i = 0; i < inputs.size() && i < wants.size(); ++i)
      if (const Tensor* t = inputs[i].get<Tensor>(); t && t->requires_grad && !wants[i])
        return input_error("aot.debug_assert",
                           fmt::format("input {} requires grad, but the graph was compiled for one that does not", i));
    return inner(inputs);
  };
}

}  // namespace partita
