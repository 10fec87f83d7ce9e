#pragma once
// Conversions between values and metas, for evals that follow their operator's fake in sizes, strides and dtype.
#include <unordered_map>

#include "core/ops/record/call.h"

namespace partita {

/// Sizes, strides, dtype and device of a value.
TensorMeta meta_of(const Tensor& t);
/// A new tensor for a meta without symbols.
Tensor empty_of(const TensorMeta& meta);
/// A new tensor for the result of a call, by its fake.
Tensor empty_of(const EvalCall& call, Meta (*fake)(FakeCall&));
/// A view with another geometry over base's memory. Fails with PyTorch's message when it reaches beyond that memory.
Tensor view_of(const Tensor& base, const TensorMeta& meta);

/// A value as an argument of a scratch graph: a tensor becomes a placeholder, whose value `held` keeps, anything else a
/// literal.
Arg as_arg(const Value& value, Graph& graph, std::unordered_map<const Node*, Value>* held = nullptr);

/// The call of an evaluation, as fakes see it.
class CallOfValues {
 public:
  explicit CallOfValues(const EvalCall& values);

 private:
  Graph graph_;

 public:
  FakeCall call;
};

/// Evaluates a view operator by its fake. The results alias the argument `self`.
template <Meta (*fake)(FakeCall&)>
Value alias_of(EvalCall& values);

/// A view, or a list of views, of base with the geometry of a meta.
Value alias_by(const Meta& meta, const Tensor& base);

/// Evaluates a view: the first argument's memory with the geometry that the fake gives.
template <Meta (*fake)(FakeCall&)>
Value alias_of(EvalCall& values) {
  CallOfValues metas(values);
  return alias_by(fake(metas.call), values.tensor(values.schema.args[0].name));
}

}  // namespace partita
