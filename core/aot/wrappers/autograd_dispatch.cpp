#include <algorithm>

#include "core/aot/wrapper.h"
#include "core/base/assign.h"

namespace partita {

std::optional<AutogradDispatchWrapper> AutogradDispatchWrapper::pre_compile(const AotGraphs& graphs,
                                                                            bool lazy_backward) {
  const Partition& p = graphs.partition;
  if (!p.backward) return std::nullopt;
  AutogradDispatchWrapper w;
  // Layers inside take tokens and the random offset out.
  w.outputs = p.forward_outputs - graphs.tokens - graphs.functional_rng;
  w.saved = p.saved.size();
  w.saved_symbols = p.saved_symbols;
  w.tangent_of = graphs.tangent_of;
  w.lazy_backward = lazy_backward;
  const std::vector<Arg> gradients = p.backward->outputs();
  for (std::size_t i = 0; i < graphs.meta.inputs.size() && i < gradients.size(); ++i) {
    const InputAliasInfo& info = graphs.meta.inputs[i];
    if (info.requires_grad && !info.is_leaf && gradients[i].is_none()) w.detached.push_back(i);
  }
  return w;
}

Status Autograd::compile_backward() {
  if (!backward) TRY_DO(assign(backward, compile()));
  return {};
}

BoxedFn AutogradDispatchWrapper::post_compile(BoxedFn inner, std::shared_ptr<Autograd> autograd) const {
  CHECK(autograd, "a backward that nobody asks for");
  return [w = *this, inner = std::move(inner),
          autograd = std::move(autograd)](std::vector<Value>& inputs) -> Result<std::vector<Value>> {
    for (std::size_t i : w.detached)
      if (const Tensor* t = inputs[i].get<Tensor>()) {
        Tensor detached = *t;
        detached.requires_grad = false;
        inputs[i] = std::move(detached);
      }
    TRY(std::vector<Value> values, inner(inputs));
    CHECK(values.size() == w.outputs + w.saved, "the forward returned a wrong number of values");
    const auto own = values.begin() + static_cast<std::ptrdiff_t>(w.outputs);
    std::vector<Value> saved(std::make_move_iterator(own), std::make_move_iterator(values.end()));
    values.resize(w.outputs);
    autograd->gradients.clear();
    if (!autograd->tangents) return values;
    TRY_DO(autograd->compile_backward());
    std::ranges::rotate(saved, saved.end() - static_cast<std::ptrdiff_t>(w.saved_symbols));
    TRY(const std::vector<Value> tangents, autograd->tangents(values));
    saved.insert(saved.end(), tangents.begin(), tangents.end());
    TRY(autograd->gradients, autograd->backward(std::move(saved)));
    return values;
  };
}

}  // namespace partita
