#pragma once
// What gradient functions share.
#include "core/ops/record/call.h"

namespace partita {

// What a `gradient` function returns: of the first argument alone (null: it has none), and of the items of a list.
std::vector<Node*> gradient_of_first(const GradCall& call, Node* gradient);
std::vector<Node*> gradients_of_items(GradCall& call, std::string_view list, std::vector<Node*> gradients);

/// The node of a tensor argument; fails when it is None.
Node* tensor_node(const FakeCall& call, std::string_view name);
/// The results of a call that gives several, one by one.
std::vector<Node*> results_of(Builder& build, Node* call);
/// A tensor in a dtype: itself where it has it.
Node* to_dtype(Builder& build, const Arg& tensor, DType dtype);

}  // namespace partita
