#pragma once
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// The part of a joint graph that each node belongs to. Vectors are indexed by Node::id.
struct JointParts {
  std::vector<Node*> primals;  ///< placeholders that are not tangents, in order
  std::vector<Node*> tangents;
  std::vector<Arg> forward_outputs;
  std::vector<Arg> gradients;
  std::vector<char> needed_by_forward;  ///< computed from primals for a forward output or a side effect
  std::vector<char> on_tangents;        ///< depends on a tangent: only the backward can compute it
  std::vector<char> returned_gradient;  ///< a gradient output
  std::vector<int> forward_order;       ///< position among needed_by_forward; -1 elsewhere

  bool forward(const Node* n) const { return needed_by_forward[n->id()]; }
  bool backward(const Node* n) const { return on_tangents[n->id()] || returned_gradient[n->id()]; }
};

bool is_tangent(const Node& node);
bool is_backward_input(const Node& node);  ///< a tangent, or the backward's random seed or offset
Result<JointParts> find_joint_parts(const Graph& joint, std::optional<std::size_t> forward_outputs);

}  // namespace partita
