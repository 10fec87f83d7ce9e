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
  /// For each gradient of a primal, in the order of `gradients`, its primal. The gradient of a plain tensor may be a
  /// tensor subclass, which is returned as its inner tensors.
  std::vector<std::size_t> gradient_of;
  std::vector<char> needed_by_forward;  ///< computed from primals for a forward output or a side effect
  std::vector<char> on_tangents;        ///< depends on a tangent: only the backward can compute it
  std::vector<char> returned_gradient;  ///< a gradient output
  std::vector<int> forward_order;       ///< position among needed_by_forward; -1 elsewhere

  bool forward(const Node* n) const { return needed_by_forward[n->id()]; }
  bool backward(const Node* n) const { return on_tangents[n->id()] || returned_gradient[n->id()]; }
};

bool is_tangent(const Node& node);         ///< a gradient that the backward is given
bool is_backward_input(const Node& node);  ///< a tangent, or the backward's random seed or offset
/// An input that is no tensor and no number, such as a device mesh: it is handed to outputs and to operators of others.
bool is_opaque(const Node& node);
/// False only where numbers tell that the sizes differ.
bool may_be_same_size(const Meta& a, const Meta& b);
/// `forward_outputs` unset: the number that the outputs' descriptors, or else the sizes of gradients and primals, tell.
/// Errors partition.joint where these allow none, and partition.outputs where they allow several.
Result<JointParts> find_joint_parts(const Graph& joint, std::optional<std::size_t> forward_outputs);

}  // namespace partita
