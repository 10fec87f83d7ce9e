#pragma once
// From values to metas and back: an eval that follows its operator's fake for sizes, strides and dtype.
#include "core/ops/call.h"

namespace partita {

TensorMeta meta_of(const Tensor& t);
/// A new tensor of a meta without symbols.
Tensor empty_of(const TensorMeta& meta);
/// Another geometry over base's memory; fails, in PyTorch's words, when it reaches past it.
Tensor view_of(const Tensor& base, const TensorMeta& meta);

/// The call that an evaluation makes, seen by metas.
class CallOfValues {
 public:
  explicit CallOfValues(const EvalCall& values);

 private:
  Graph graph_;

 public:
  FakeCall call;
};

/// Evaluation of a view operator by its fake: the results alias the argument `self`.
template <Meta (*fake)(FakeCall&)>
Value alias_of(EvalCall& values);

Value alias_by(const Meta& meta, const Tensor& base);

template <Meta (*fake)(FakeCall&)>
Value alias_of(EvalCall& values) {
  CallOfValues metas(values);
  return alias_by(fake(metas.call), values.tensor(values.schema.args[0].name));
}

}  // namespace partita
