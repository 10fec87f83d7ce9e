#include "core/aot/wrapper.h"
#include "core/base/check.h"

namespace partita {

std::optional<EffectTokensWrapper> EffectTokensWrapper::pre_compile(const AotGraphs& graphs) {
  if (graphs.tokens == 0) return std::nullopt;
  return EffectTokensWrapper{graphs.tokens};
}

BoxedFn EffectTokensWrapper::post_compile(BoxedFn inner) const {
  return [n = tokens, inner = std::move(inner)](std::vector<Value>& inputs) -> Result<std::vector<Value>> {
    TRY(const Tensor token, Tensor::zeros(DType::Float32, {0}));
    inputs.insert(inputs.begin(), n, token);
    TRY(std::vector<Value> values, inner(inputs));
    CHECK(values.size() >= n && inputs.size() >= n, "a graph does not return its tokens");
    inputs.erase(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(n));
    values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n));
    return values;
  };
}

}  // namespace partita
