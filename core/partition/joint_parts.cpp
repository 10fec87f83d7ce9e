// Finds out which nodes of a joint graph depend on tangents, which the forward needs, and which gradient is whose.
// Where descriptors do not tell how many outputs are the forward's, sizes are matched.
#include "core/partition/joint_parts.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "core/functionalize/effect_tokens.h"
#include "core/functionalize/functional_rng.h"
#include "core/ir/place.h"
#include "core/ops/record/record.h"
#include "core/partition/cost.h"

namespace partita {

bool is_tangent(const Node& node) {
  return node.is_placeholder() && (node.name().starts_with("tangents") || node.target.starts_with("tangents"));
}

bool is_backward_input(const Node& node) {
  return is_tangent(node) || is_backward_seed(node);
}

bool is_opaque(const Node& node) {
  if (!node.is_placeholder() || node.meta.tensor() || node.meta.sym() || is_effect_token(node)) return false;
  return std::ranges::none_of(node.users(), [](const Node* user) { return find_record(user->op()) != nullptr; });
}

bool may_be_same_size(const Meta& a, const Meta& b) {
  const TensorMeta *x = a.tensor(), *y = b.tensor();
  if (!x || !y) return true;
  const auto agree = [](SymExpr m, SymExpr n) { return !m.is_int() || !n.is_int() || m.as_int() == n.as_int(); };
  return std::ranges::equal(x->sizes, y->sizes, agree);
}

namespace {

/// `first`: it is the gradient itself or the first inner tensor of one, which its sizes follow as numbers.
bool fits(const Arg& gradient, const Node& primal, bool first = true) {
  if (!gradient.node()) return true;
  const Meta &is = gradient.node()->meta, &of = primal.meta;
  if (is.tensor() && of.sym()) return false;
  if (is.sym() && of.tensor()) return !first;
  return may_be_same_size(is, of);
}

/// Gives each gradient, in order, to a primal. The gradient of a plain tensor may be a tensor subclass, which is
/// several outputs. Nullopt if sizes contradict all ways; of several, the one that gives early primals one each.
std::optional<std::vector<std::size_t>> primals_of(std::span<const Arg> gradients, std::span<Node* const> primals) {
  const std::size_t extra = gradients.size() - primals.size();
  // ends[i][k]: primals from i on can take the gradients from i + k on.
  std::vector<std::vector<char>> ends(primals.size() + 1, std::vector<char>(extra + 1, 0));
  std::vector<std::vector<std::size_t>> taken(primals.size(), std::vector<std::size_t>(extra + 1, 0));
  ends[primals.size()][extra] = 1;
  for (std::size_t i = primals.size(); i-- > 0;)
    for (std::size_t k = 0; k <= extra; ++k)
      for (std::size_t more = 0; k + more <= extra && !ends[i][k]; ++more) {
        const Arg& last = gradients[i + k + more];
        if (!fits(last, *primals[i], more == 0) || (more > 0 && (!last.node() || !gradients[i + k].node()))) break;
        ends[i][k] = ends[i + 1][k + more];
        taken[i][k] = more;
      }
  if (!ends[0][0]) return std::nullopt;
  std::vector<std::size_t> found;
  for (std::size_t i = 0, k = 0; i < primals.size(); k += taken[i++][k]) found.insert(found.end(), taken[i][k] + 1, i);
  return found;
}

/// Can each tangent be of one of the forward's outputs, in their order?
bool tangents_fit(std::span<const Arg> forward_outputs, std::span<Node* const> tangents) {
  std::size_t at = 0;
  for (const Arg& output : forward_outputs)
    if (at < tangents.size() && output.node() && may_be_same_size(output.node()->meta, tangents[at]->meta)) ++at;
  return at == tangents.size();
}

/// By the outputs' descriptors in a trace log; nullopt without them.
std::optional<std::size_t> described_forward_outputs(const Graph& joint, std::size_t outputs) {
  const Node* output = joint.output();
  if (!output || output->note.empty()) return std::nullopt;
  std::size_t count = 0, forward = outputs;
  for (std::string_view rest = output->note;; ++count) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view what = rest.substr(0, end);  // "None" of what has no gradient
    if (forward == outputs && (what == "None" || what.find("GradAOTOutput(") != std::string_view::npos))
      forward = count;
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  return count + 1 == outputs ? std::optional(forward) : std::nullopt;
}

/// The numbers of forward outputs that sizes allow; the one with one gradient per primal comes first. A gradient that
/// is a tensor subclass makes fewer of them the forward's.
std::vector<std::size_t> possible_forward_outputs(const JointParts& parts, std::span<const Arg> outputs,
                                                  std::span<Node* const> primals, std::span<Node* const> tangents) {
  const auto of_backward = [&](const Arg& a) { return a.node() && parts.on_tangents[a.node()->id()]; };
  constexpr std::size_t most_inner_tensors = 256;  // bounds the work on text that is hostile
  const std::size_t usual = outputs.size() - primals.size();
  std::vector<std::size_t> found;
  for (std::size_t count = usual + 1; count-- > 0 && usual - count <= most_inner_tensors && found.size() < 2;) {
    if (count < usual &&
        (!tangents_fit(outputs.first(count), tangents) || (outputs[count].node() && !of_backward(outputs[count]))))
      break;
    if (std::ranges::none_of(outputs.first(count), of_backward) && primals_of(outputs.subspan(count), primals))
      found.push_back(count);
  }
  return found;
}

Result<std::size_t> count_forward_outputs(const Graph& joint, const JointParts& parts, std::span<const Arg> outputs,
                                          std::span<Node* const> primals, std::span<Node* const> tangents) {
  if (outputs.size() < primals.size())
    return input_error("partition.joint",
                       fmt::format("graph {} has {} outputs for {} primals, so it is not a joint graph (one gradient "
                                   "or None per primal after the forward's outputs)",
                                   joint.name, outputs.size(), primals.size()),
                       {.graph = joint.name});
  if (const auto described = described_forward_outputs(joint, outputs.size())) return *described;
  const std::vector<std::size_t> possible = possible_forward_outputs(parts, outputs, primals, tangents);
  if (possible.size() == 1) return possible[0];
  if (possible.size() > 1)
    return input_error("partition.outputs",
                       fmt::format("the outputs of graph {} may be {} or {} of the forward, and then gradients; `aot "
                                   "--forward-outputs N` is told how many",
                                   joint.name, possible[0], possible[1]),
                       {.graph = joint.name});
  const std::size_t usual = outputs.size() - primals.size();
  for (std::size_t i = 0; i < primals.size(); ++i)
    if (const Arg& gradient = outputs[usual + i]; !fits(gradient, *primals[i]))
      return input_error("partition.joint",
                         fmt::format("output {} has other sizes than {}, whose gradient it should be; `aot "
                                     "--forward-outputs N` is told how many are the forward's",
                                     gradient.node()->name(), primals[i]->name()),
                         place_of(*gradient.node()));
  return usual;
}

}  // namespace

Result<JointParts> find_joint_parts(const Graph& joint, std::optional<std::size_t> forward_outputs) {
  JointParts r;
  const std::size_t limit = joint.id_limit();
  r.needed_by_forward.assign(limit, 0);
  r.on_tangents.assign(limit, 0);
  r.returned_gradient.assign(limit, 0);
  r.forward_order.assign(limit, -1);
  std::vector<Node*> differentiated, tangents;  // without seeds and tokens
  for (Node* n : joint.placeholders()) {
    const bool backward = is_backward_input(*n);
    (backward ? r.tangents : r.primals).push_back(n);
    if (is_tangent(*n)) tangents.push_back(n);
    if (!backward && !is_forward_seed(*n) && !is_effect_token(*n)) differentiated.push_back(n);
  }
  for (Node* n : joint) {
    if (n->is_output()) continue;
    bool hangs = is_backward_input(*n);
    for (Node* input : n->inputs()) hangs |= r.on_tangents[input->id()] != 0;
    r.on_tangents[n->id()] = hangs;
  }

  const std::vector<Arg> outputs = joint.outputs();
  // The last one is the backward's random offset.
  const bool offset = std::ranges::any_of(r.tangents, [](const Node* n) { return is_backward_seed(*n); });
  const std::span<const Arg> values(outputs.data(), outputs.size() - (offset && !outputs.empty()));
  std::size_t forward_count = 0;
  if (forward_outputs) {
    forward_count = *forward_outputs;
  } else {
    TRY(forward_count, count_forward_outputs(joint, r, values, differentiated, tangents));
  }
  if (forward_count > values.size())
    return input_error("partition.joint",
                       fmt::format("graph {} has {} outputs, fewer than {} forward outputs", joint.name, outputs.size(),
                                   forward_count),
                       {.graph = joint.name});
  r.forward_outputs.assign(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(forward_count));
  r.gradients.assign(outputs.begin() + static_cast<std::ptrdiff_t>(forward_count), outputs.end());
  const std::span<const Arg> gradients = values.subspan(forward_count);
  if (gradients.size() > differentiated.size()) {
    const auto of = primals_of(gradients, differentiated);
    if (!of)
      return input_error("partition.joint",
                         fmt::format("{} gradients do not fit {} primals by their sizes; is the number of forward "
                                     "outputs ({}) right?",
                                     gradients.size(), differentiated.size(), forward_count),
                         {.graph = joint.name});
    r.gradient_of = *of;
  } else {
    r.gradient_of.resize(gradients.size());
    std::iota(r.gradient_of.begin(), r.gradient_of.end(), 0);
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
