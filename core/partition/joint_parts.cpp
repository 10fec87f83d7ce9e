#include "core/partition/joint_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/ir/place.h"
#include "core/ops/effect_tokens.h"
#include "core/ops/functional_rng.h"
#include "core/partition/cost.h"

namespace partita {

bool is_tangent(const Node& node) {
  return node.is_placeholder() && (node.name().starts_with("tangents") || node.target.starts_with("tangents"));
}

bool is_backward_input(const Node& node) {
  return is_tangent(node) || is_backward_seed(node);
}

Result<JointParts> find_joint_parts(const Graph& joint, std::optional<std::size_t> forward_outputs) {
  JointParts r;
  const std::size_t limit = joint.id_limit();
  r.needed_by_forward.assign(limit, 0);
  r.on_tangents.assign(limit, 0);
  r.returned_gradient.assign(limit, 0);
  r.forward_order.assign(limit, -1);
  std::size_t gradients = 0;
  for (Node* n : joint.placeholders()) {
    const bool backward = is_backward_input(*n);
    (backward ? r.tangents : r.primals).push_back(n);
    gradients += !backward && !is_forward_seed(*n) && !is_effect_token(*n);
  }
  if (std::ranges::any_of(r.tangents, [](const Node* n) { return is_backward_seed(*n); })) ++gradients;

  std::vector<Arg> outputs = joint.outputs();
  std::size_t forward_count = outputs.size() - std::min(outputs.size(), gradients);
  if (forward_outputs) {
    forward_count = *forward_outputs;
  } else if (outputs.size() < gradients) {
    return input_error("partition.joint",
                       fmt::format("graph {} has {} outputs for {} primals, so it is not a joint graph (one gradient "
                                   "or None per primal after the forward's outputs)",
                                   joint.name, outputs.size(), r.primals.size()),
                       {.graph = joint.name});
  }
  if (forward_count > outputs.size())
    return input_error("partition.joint",
                       fmt::format("graph {} has {} outputs, fewer than {} forward outputs", joint.name, outputs.size(),
                                   forward_count),
                       {.graph = joint.name});
  r.forward_outputs.assign(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(forward_count));
  r.gradients.assign(outputs.begin() + static_cast<std::ptrdiff_t>(forward_count), outputs.end());

  for (Node* n : joint) {
    if (n->is_output()) continue;
    bool hangs = is_backward_input(*n);
    for (Node* input : n->inputs()) hangs |= r.on_tangents[input->id()] != 0;
    r.on_tangents[n->id()] = hangs;
  }
  for (const Arg& g : r.gradients)
    if (Node* n = g.node()) r.returned_gradient[n->id()] = 1;

  for (Node* n : r.primals) r.needed_by_forward[n->id()] = 1;
  for (const Arg& a : r.forward_outputs) {
    Node* n = a.node();
    if (n && r.on_tangents[n->id()])
      return input_error("partition.joint",
                         fmt::format("Node {} was invalid, but is output: this output of the forward depends on "
                                     "a tangent; is the number of forward outputs ({}) right?",
                                     n->name(), forward_count),
                         place_of(*n));
    if (n) r.needed_by_forward[n->id()] = 1;
  }
  for (Node* n = joint.last(); n; n = n->previous()) {
    if (!r.on_tangents[n->id()] && cost_class(*n).side_effect) r.needed_by_forward[n->id()] = 1;
    if (r.needed_by_forward[n->id()])
      for (Node* input : n->inputs()) r.needed_by_forward[input->id()] = 1;
  }
  int order = 0;
  for (Node* n : joint)
    if (r.forward(n)) r.forward_order[n->id()] = order++;
  return r;
}

}  // namespace partita
