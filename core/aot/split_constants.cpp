#include "core/aot/split_constants.h"

#include <algorithm>
#include <unordered_map>

#include "core/ops/facts/control.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"
#include "core/passes/value_memory.h"

namespace partita {
namespace {

class Splitter {
 public:
  Splitter(Graph& graph, std::size_t limit)
      : graph_(graph), limit_(limit), aliases_(graph), known_(graph.id_limit()), inputs_(graph.placeholders()) {}

  std::optional<ConstantsGraph> split(const std::vector<std::size_t>& fixed) {
    for (std::size_t i : fixed)
      if (!aliases_.mutated(*inputs_[i]) && bytes(*inputs_[i]))
        known_[inputs_[i]->id()] = {true, true, *bytes(*inputs_[i])};
    for (const Node* node : graph_) look_at(*node);
    keep_small();
    std::vector<Node*> moved;
    for (Node* node : graph_)
      if (moves(*node)) moved.push_back(node);
    if (moved.empty()) return std::nullopt;
    made_->shapes = graph_.shapes;
    std::vector<Arg> results;
    for (Node* node : moved) results.emplace_back(copied(node));
    made_->set_output(Arg::tuple(std::move(results)));
    for (Node* node : moved) {
      Node* input = graph_.placeholder("_FOLDED_CONST_" + node->name(), node->meta, after_inputs());
      input->note = "BufferAOTInput(target='" + input->name() + "')";
      for (Node* user : std::vector<Node*>(node->users())) user->replace_input(node, input);
    }
    graph_.eliminate_dead(has_effect);
    out_.graph = std::move(made_);
    return std::move(out_);
  }

 private:
  struct Known {
    bool constant = false;  ///< the same in each run
    bool of_input = false;  ///< it depends on an input
    std::size_t bytes = 0;  ///< of the memory that it lies in, or less if it is made of less
    bool is_view = false;
    std::size_t made_of = 0;  ///< bytes of its arguments
  };

  /// Of several tensors: of all.
  static std::optional<std::size_t> bytes(const Meta& meta) {
    if (const MetaTuple* several = meta.tuple()) {
      std::size_t sum = 0;
      for (const Meta& item : several->items) {
        const auto n = bytes(item);
        if (!n) return std::nullopt;
        sum += *n;
      }
      return sum;
    }
    const TensorMeta* t = meta.tensor();
    if (!t || !t->strides_known || !concrete(t->sizes) || !concrete(t->strides)) return std::nullopt;
    return static_cast<std::size_t>(byte_size(*t).as_int());
  }
  static std::optional<std::size_t> bytes(const Node& node) { return bytes(node.meta); }

  /// Does the call only show memory of its first argument, or may it?
  static bool shows(const Node& node) {
    if (node.is(Op::getitem())) return shows(*node.args()[0].node());
    const Schema* schema = find_schema(node.op());
    const OpRecord* record = find_record(node.op());
    return (schema && schema->is_view) || (record && record->views.may_alias);
  }

  void look_at(const Node& node) {
    if (node.is_placeholder() || node.is_output()) return;
    if (node.is(Op::get_attr())) {
      if (graph_.attributes.contains(node.target) && !aliases_.mutated(node))
        known_[node.id()] = {true, false, bytes(node).value_or(0)};
      return;
    }
    const bool known = find_record(node.op()) || node.is(Op::getitem());
    if (!node.op()->is_call() || find_control(node.op()) || !known || has_effect(node) || aliases_.mutated(node) ||
        !bytes(node) || aliases_.returned(node))
      return;  // what the caller gets has memory of its own in each run
    Known made{true};
    for (const Node* n : node.inputs()) {
      const Known& from = known_[n->id()];
      if (!from.constant) return;
      made.of_input |= from.of_input;
      made.bytes += from.bytes;
    }
    made.is_view = shows(node) || node.meta.tuple();  // of several results, each is kept by itself
    made.made_of = made.bytes;
    if (!made.is_view) {
      // What is in between may be twice as large: weights in double.
      if (*bytes(node) > std::max(limit_, 2 * made.made_of)) return;
      made.bytes = std::min(made.made_of, *bytes(node));
    }
    known_[node.id()] = made;
  }

  /// Computes in each run what would be kept and is larger than what it is made of.
  void keep_small() {
    std::vector<Node*> nodes;
    for (Node* node : graph_) nodes.push_back(node);
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      Known& own = known_[(*node)->id()];
      if (moves(**node) && *bytes(**node) > std::max(limit_, own.made_of)) own.constant = false;
    }
  }

  /// A computed constant that something else than constants reads, be it through views.
  bool moves(const Node& node) const {
    const Known& own = known_[node.id()];
    return own.constant && own.of_input && !own.is_view && !node.is_placeholder() && is_read(node);
  }
  bool is_read(const Node& node) const {
    return std::ranges::any_of(node.users(), [&](const Node* user) {
      const Known& reader = known_[user->id()];
      return !reader.constant || (reader.is_view && is_read(*user));
    });
  }

  /// The node's copy in the graph of constants, made with all that it reads.
  Node* copied(Node* node) {
    if (const auto found = copies_.find(node); found != copies_.end()) return found->second;
    Node* copy = nullptr;
    if (node->is_placeholder()) {
      Node* before = made_->first();
      while (before && before->is_placeholder()) before = before->next();
      copy = made_->placeholder(node->name(), node->meta, before);
      out_.inputs.push_back(static_cast<std::size_t>(std::ranges::find(inputs_, node) - inputs_.begin()));
    } else {
      for (Node* n : node->inputs()) copied(n);
      copy = made_->copy_node(*node, [&](Node* n) { return Arg(copies_.at(n)); });
      if (node->is(Op::get_attr())) made_->attributes[node->target] = graph_.attributes.at(node->target);
    }
    return copies_[node] = copy;
  }

  Node* after_inputs() const {
    Node* node = graph_.first();
    while (node && node->is_placeholder()) node = node->next();
    return node;
  }

  Graph& graph_;
  std::size_t limit_;
  Aliases aliases_;
  std::vector<Known> known_;  // by node id
  std::vector<Node*> inputs_;
  ConstantsGraph out_;
  std::unique_ptr<Graph> made_ = std::make_unique<Graph>("constants");  ///< out_'s
  std::unordered_map<const Node*, Node*> copies_;
};

}  // namespace

std::optional<ConstantsGraph> split_constants(Graph& graph, const std::vector<std::size_t>& fixed,
                                              std::size_t limit_bytes) {
  return Splitter(graph, limit_bytes).split(fixed);
}

}  // namespace partita
