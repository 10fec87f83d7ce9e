#include <unordered_map>

#include "core/compare/per_node.h"
#include "core/ir/place.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

bool writes(const Node& node) {
  const Schema* schema = node.op()->is_call() ? find_schema(node.op()) : nullptr;
  return schema && schema->is_mutable;
}

/// A call that writes, of which a later call may see the result; copy_ at the end of a graph is none.
const Node* find_write(const Graph& graph) {
  const Node* first = nullptr;
  for (const Node* node : graph) {
    if (writes(*node) && !first) first = node;
    if (first && node->op()->is_call() && !writes(*node)) return first;
  }
  return nullptr;
}

class Extractor {
 public:
  explicit Extractor(const Graph& graph) : graph_(graph) {
    out_.graph = std::make_unique<Graph>(graph.name);
    out_.graph->shapes = graph.shapes;
    out_.graph->attributes = graph.attributes;
    // All of them, for they bind the symbols of sizes.
    for (const Node* p : graph.placeholders()) copies_.emplace(p, out_.graph->copy_node(*p, {}));
  }

  SingleCalls run(std::span<const Node* const> nodes) {
    for (const Node* node : nodes) read_before(*node);
    std::vector<Arg> results;
    for (const Node* node : nodes)
      if (is_copied(*node)) {
        results.emplace_back(copy(*node));
        out_.nodes.push_back(node);
      }
    out_.graph->set_output(Arg::tuple(std::move(results)));
    return std::move(out_);
  }

 private:
  /// Calls that give one tensor have a value of their own; tuples and numbers are computed along with what reads them.
  static bool is_given(const Node& node) { return node.op()->is_call() && node.meta.tensor(); }

  bool is_copied(const Node& node) {
    const auto [known, is_new] = fits_.emplace(&node, true);
    if (!is_new) return known->second;
    bool fits = !has_effect(node) && !(node.is(Op::get_attr()) && graph_.child(node.target));
    for (const Node* in : node.inputs()) fits = fits && (in->is_placeholder() || is_given(*in) || is_copied(*in));
    return fits_[&node] = fits;
  }

  /// Placeholders stand first, so they are made before any call is copied.
  void read_before(const Node& node) {
    if (!is_copied(node)) return;
    for (const Node* in : node.inputs()) {
      if (in->is_placeholder()) continue;
      if (!is_given(*in)) {
        read_before(*in);
        continue;
      }
      if (given_.contains(in)) continue;
      given_.emplace(in, out_.graph->placeholder(in->name() + "_given", in->meta));
      out_.given.push_back(in);
    }
  }

  Node* copy(const Node& node) {
    if (const auto found = copies_.find(&node); found != copies_.end()) return found->second;
    for (const Node* in : node.inputs())
      if (!given_.contains(in)) copy(*in);
    Node* made = out_.graph->copy_node(node, [&](Node* in) -> Arg {
      const auto given = given_.find(in);
      return given != given_.end() ? given->second : copies_.at(in);
    });
    copies_.emplace(&node, made);
    return made;
  }

  const Graph& graph_;
  SingleCalls out_;
  std::unordered_map<const Node*, Node*> copies_, given_;
  std::unordered_map<const Node*, bool> fits_;
};

}  // namespace

Result<SingleCalls> single_calls(const Graph& graph, std::span<const Node* const> nodes) {
  if (const Node* write = find_write(graph))
    return unsupported("compare.writes", "writes to memory that later calls read; compare the functional graph",
                       place_of(*write));
  return Extractor(graph).run(nodes);
}

}  // namespace partita
