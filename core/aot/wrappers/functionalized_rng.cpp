#include "core/aot/wrapper.h"
#include "core/base/check.h"

namespace partita {
namespace {

/// Appends seed and offset to the inputs.
Status give_state(const PhiloxState& state, std::vector<Value>& inputs) {
  for (const std::uint64_t word : {state.seed, state.offset}) {
    TRY(Tensor t, Tensor::zeros(DType::Int64, {}));
    *t.as<std::int64_t>() = static_cast<std::int64_t>(word);
    inputs.emplace_back(std::move(t));
  }
  return {};
}

/// Takes the new offset out of the results.
void take_offset(PhiloxState& state, std::vector<Value>& values, std::size_t at) {
  CHECK(at < values.size() && values[at].get<Tensor>(), "a graph does not return its random offset");
  state.offset = static_cast<std::uint64_t>(*values[at].get<Tensor>()->as<std::int64_t>());
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

std::optional<FunctionalizedRngWrapper> FunctionalizedRngWrapper::pre_compile(const AotGraphs& graphs) {
  if (!graphs.functional_rng) return std::nullopt;
  FunctionalizedRngWrapper w;
  w.offset_output = graphs.partition.forward_outputs - 1;
  if (graphs.partition.backward) w.backward_offset_output = graphs.partition.backward->outputs().size() - 1;
  return w;
}

BoxedFn FunctionalizedRngWrapper::post_compile(BoxedFn inner, std::shared_ptr<PhiloxState> state) const {
  CHECK(state, "random numbers of no generator");
  return [at = offset_output, inner = std::move(inner),
          state = std::move(state)](std::vector<Value>& inputs) -> Result<std::vector<Value>> {
    const std::size_t own = inputs.size();
    TRY_DO(give_state(*state, inputs));
    TRY(std::vector<Value> values, inner(inputs));
    inputs.resize(own);
    take_offset(*state, values, at);
    return values;
  };
}

CompiledFn FunctionalizedRngWrapper::post_compile_backward(CompiledFn inner, std::shared_ptr<PhiloxState> state) const {
  return [at = *backward_offset_output, inner = std::move(inner),
          state = std::move(state)](std::vector<Value> inputs) -> Result<std::vector<Value>> {
    TRY_DO(give_state(*state, inputs));
    TRY(std::vector<Value> values, inner(std::move(inputs)));
    take_offset(*state, values, at);
    return values;
  };
}

}  // namespace partita
