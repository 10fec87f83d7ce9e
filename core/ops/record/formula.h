#pragma once
#include "core/ops/record/record.h"

namespace partita {

/// A node's outputs as nodes: itself, or its getitems in order, made right after it where missing.
std::vector<Node*> result_nodes(Node& node);
/// The gradients of the wanted arguments, by their formulas.
std::vector<Node*> apply_formulas(const std::vector<Derivative>& formulas, GradCall& call);
/// torch.Tensor.sum_to_size as autograd traces it: sum over broadcast dims, then view.
Node* sum_to_size(Builder& build, Node* grad, const SymList& sizes);
/// A gradient (`what` names it in the message) in the size and dtype of its argument, as the engine's validate_outputs
/// makes it: summed over broadcast dimensions, and cast. Raises a refusal for other sizes.
Node* fit_gradient(Builder& build, Node* grad, const TensorMeta& target, const std::string& what);

}  // namespace partita
