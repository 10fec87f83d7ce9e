#pragma once
// What gradient functions share.
#include "core/base/check.h"
#include "core/ops/call.h"

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
/// [wants(a), wants(b), ...] as the output_mask argument of the *_backward operators.
Arg output_mask(const GradCall& call, std::initializer_list<std::string_view> names);
/// For a call that returns all gradients: stores its results, in order, in the slots of the wanted arguments.
void take_results(const GradCall& call, GradientSlots& slots, Node* results,
                  std::initializer_list<std::string_view> names);
/// derivatives.yaml's maybe_multiply: grad * factor, or grad itself when the factor is 1.
Node* multiply_unless_one(Builder& build, Node* grad, const Arg& factor);
/// The conjugate of a number: Scalar.conj().
Arg conjugate(const Arg& number);
/// x.conj(); x itself when it is real.
Node* conj_if_complex(Builder& build, Node* x);

}  // namespace partita
