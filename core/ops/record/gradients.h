#pragma once
// What gradient functions share.
#include "core/base/check.h"
#include "core/ops/record/call.h"

namespace partita {

/// The gradients that a `gradient` function returns: a slot for each schema argument, null when there is none.
class GradientSlots {
 public:
  explicit GradientSlots(const GradCall& call) : schema_(call.schema), slots_(call.schema.args.size()) {}

  Node*& operator[](std::string_view argument) {
    int i = schema_.index_of(argument);
    CHECK(i >= 0, std::string(argument));
    return slots_[static_cast<std::size_t>(i)];
  }
  operator std::vector<Node*>() && { return std::move(slots_); }

 private:
  const Schema& schema_;
  std::vector<Node*> slots_;
};

/// The node of a tensor argument; fails when it is None.
Node* tensor_node(const FakeCall& call, std::string_view name);
/// The results of a call that gives several, one by one.
std::vector<Node*> results_of(Builder& build, Node* call);
/// A tensor in a dtype: itself where it has it.
Node* to_dtype(Builder& build, const Arg& tensor, DType dtype);

}  // namespace partita
