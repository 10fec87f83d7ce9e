#include "core/functionalize/stage_rules.h"

#include <algorithm>

#include "core/base/config.h"
#include "core/functionalize/effect_tokens.h"
#include "core/functionalize/functional_rng.h"
#include "core/ir/place.h"
#include "core/ops/facts/control.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/in_place.h"
#include "core/ops/schema/schema.h"

namespace partita {
namespace {

class Rules {
 public:
  Rules(const Graph& graph, std::vector<Diagnostic>& found) : graph_(graph), found_(found) {}

  void aten() {
    for (Node* node : graph_) {
      if (!node->op()->is_call() || node->is(set_grad_enabled())) continue;
      const bool torch = node->op()->kind == OpKind::Torch;
      // An operator that nobody knows came with the file: what needs to know it refuses it by name.
      if (torch ? !find_overloads(node->op()->name).empty() : !is_size_arithmetic(*node))
        report(*node, "calls " + node->op()->name + ", which is no ATen operator");
      // Of other libraries' operators, and of those whose results depend on values, only what is annotated is known.
      const OpRecord* record = find_record(node->op());
      const bool infers = record && (record->fake || record->pointwise.body || record->decompose);
      if (!node->meta.known() && !returns_nothing(*node) && (!torch || infers)) report(*node, "has no meta");
    }
  }

  void functional() {
    for (Node* node : graph_) {
      if (resizes_storage(node->op())) report(*node, node->op()->name + " resizes its argument's memory");
      const Schema* schema = find_schema(node->op());
      if (!schema || !schema->is_mutable) continue;
      if (!is_epilogue(*node)) report(*node, node->op()->name + " writes to its argument");
    }
  }

  void joint() {
    bool tangents = false;
    for (Node* node : graph_.placeholders()) {
      bool tangent = node->name().starts_with("tangents_");
      if (is_forward_seed(*node) || is_backward_seed(*node)) continue;
      if (!tangent && !node->name().starts_with("primals_"))
        report(*node, "an input of a joint graph is named primals_N or tangents_N");
      if (tangents && !tangent) report(*node, "a primal after a tangent");
      tangents |= tangent;
    }
    gradients();
  }

 private:
  /// The last outputs are the primals' gradients, and the backward's random offset if there is one.
  void gradients() {
    std::vector<const Node*> primals;
    for (Node* node : graph_.placeholders())
      if (node->name().starts_with("primals_") && !is_effect_token(*node)) primals.push_back(node);
    const std::vector<Arg> outputs = graph_.outputs();
    const bool random = std::ranges::any_of(graph_.placeholders(), [](const Node* n) { return is_backward_seed(*n); });
    if (outputs.size() < primals.size() + random)
      return report(*graph_.last(), "returns no gradient or None for each primal");
    for (std::size_t i = 0; i < primals.size(); ++i) {
      const Node* gradient = outputs[outputs.size() - random - primals.size() + i].node();
      const TensorMeta *of = primals[i]->meta.tensor(), *is = gradient ? gradient->meta.tensor() : nullptr;
      if (of && is && (of->dtype != is->dtype || of->dim() != is->dim()))
        report(*gradient, "is the gradient of " + primals[i]->name() + " and has another dtype or rank");
    }
  }

  void report(const Node& node, std::string what) {
    Diagnostic d{Fault::Internal, "ops.rules", std::move(what)};
    d.where = place_of(node);
    found_.push_back(std::move(d));
  }

  static bool is_size_arithmetic(const Node& node) {
    if (node.is(Op::getitem())) return true;
    std::vector<Node*> inputs = node.inputs();
    return std::all_of(inputs.begin(), inputs.end(), [](Node* n) { return n->meta.sym(); });
  }

  static bool returns_nothing(const Node& node) {
    const Schema* schema = find_schema(node.op());
    return schema && schema->returns.empty();
  }

  /// Whether the node is a copy_ onto a placeholder which, like the copy, only the output reads from there on.
  static bool is_epilogue(const Node& node) {
    const OpRecord* record = find_record(node.op());
    if (!record || record->role != Role::CopiesSecond || !find_schema(node.op())->is_mutable) return false;
    Node* target = node.args().empty() ? nullptr : node.args()[0].node();
    if (!target || !target->is_placeholder()) return false;
    for (const Node* later = node.next(); later && !later->is_output(); later = later->next())
      for (const Node* input : later->inputs())
        if (input == target || input == &node) return false;
    return true;
  }

  const Graph& graph_;
  std::vector<Diagnostic>& found_;
};

}  // namespace

std::vector<Diagnostic> verify(const Graph& graph, Stage stage) {
  std::vector<Diagnostic> found = verify(graph);
  if (!found.empty()) return found;
  Rules rules(graph, found);
  const GraphRules hold = row_of(stage).rules;
  if (hold >= GraphRules::Aten) rules.aten();
  if (hold >= GraphRules::Functional) rules.functional();
  if (hold >= GraphRules::Joint) rules.joint();
  return found;
}

Status check_stage(const Graph& graph, Stage stage) {
  if (!config().verify) return {};
  std::vector<Diagnostic> found = verify(graph, stage);
  if (found.empty()) return {};
  Diagnostic first = found.front();
  for (std::size_t i = 1; i < found.size(); ++i) first.notes.push_back(found[i].line());
  return first;
}

}  // namespace partita
