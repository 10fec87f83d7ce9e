// Cuts a graph in three around the first call with symbols that no input gives. Tensors that cross become inputs;
// numbers and views are computed again. The new sizes get names such as s0.
#include "core/schedule/split.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "core/ir/symbols_of.h"
#include "core/ops/record/record.h"

namespace partita::schedule {
namespace {

using Nodes = std::set<const Node*>;

void for_each_expression(Meta& meta, const auto& f) {
  if (TensorMeta* t = meta.tensor()) {
    for (SymExpr& e : t->sizes) f(e);
    for (SymExpr& e : t->strides) f(e);
    f(t->offset);
  } else if (auto* e = std::get_if<SymExpr>(&meta.v)) {
    f(*e);
  } else if (auto* tuple = std::get_if<MetaTuple>(&meta.v)) {
    for (Meta& item : tuple->items) for_each_expression(item, f);
  }
}

/// The first call with symbols for what only values decide, as no input has them, and these symbols.
std::pair<const Node*, std::set<std::string>> first_unknown(const Graph& graph) {
  std::set<std::string> known;
  for (const Node* node : graph) {
    std::set<std::string> symbols = symbols_of(node->meta);
    if (node->is_placeholder()) known.merge(symbols);
    if (node->is_placeholder() || node->is_output()) continue;
    // Dynamo calls what an item() gives s0, too.
    std::erase_if(symbols, [&](const std::string& s) {
      return known.contains(s) || (graph.shapes && graph.shapes->hint(SymExpr::symbol(s)));
    });
    if (symbols.empty()) continue;
    while (node->is(Op::getitem()) && node->args()[0].node()) node = node->args()[0].node();
    return {node, symbols};
  }
  return {nullptr, {}};
}

bool may_share_memory(const Node& node) {
  if (node.is(Op::getitem())) return node.args()[0].node() && may_share_memory(*node.args()[0].node());
  const Schema* schema = find_schema(node.op());
  const OpRecord* record = find_record(node.op());
  return (schema && schema->is_view) || (record && record->views.may_alias);
}

bool writes(const Graph& graph) {
  return std::ranges::any_of(graph, [](const Node* node) {
    const Schema* schema = node->op()->is_call() ? find_schema(node->op()) : nullptr;
    return schema && schema->is_mutable;
  });
}

/// Is it computed in each part that reads it? Numbers cost nothing, and a view has to share its input's memory.
bool is_repeated(const Node& node) {
  return node.op()->kind == OpKind::GetAttr || node.meta.sym() || may_share_memory(node);
}

class Splitter {
 public:
  Splitter(const Graph& graph, const Node& at) : graph_(graph), at_(at) {
    bool later = false;
    for (const Node* node : graph) {
      later = later || node == &at;
      if (later) later_.insert(node);
    }
  }

  std::optional<SplitGraph> run(const std::set<std::string>& symbols) {
    std::vector<const Node*> results = {&at_};
    if (at_.meta.tensor() == nullptr && at_.meta.sym() == nullptr) {
      results.assign(at_.users().begin(), at_.users().end());
      for (const Node* user : results)
        if (!user->is(Op::getitem())) return std::nullopt;
      std::ranges::sort(results, {}, &Node::id);
    }
    Nodes seen;
    for (const Node* node : later_) cross(node, seen);
    const auto provide = [&](const Node* node) { pool_.emplace(node, pool_.size()); };
    for (const Node* p : graph_.placeholders()) provide(p);
    const auto names = [](const Nodes& nodes) {
      std::vector<const Node*> list(nodes.begin(), nodes.end());
      std::ranges::sort(list, {}, &Node::id);
      return list;
    };
    SplitGraph out;
    const std::vector<const Node*> crossing = names(crossing_);
    Nodes roots;
    for (const Node* node : graph_)
      if (!later_.contains(node) && node->op()->is_call()) roots.insert(node);
    const bool any = !roots.empty();
    out.before = part("before", std::move(roots), crossing, out.before_inputs);
    if (!any) out.before = nullptr;
    for (const Node* node : crossing) provide(node);
    out.call = part("at", {&at_}, results, out.call_inputs);
    for (const Node* node : results) provide(node);
    roots = later_;
    roots.erase(&at_);
    roots.erase(graph_.output());
    for (const Node* node : results) roots.erase(node);
    for (const Node* node : crossing) roots.erase(node);
    out.after = part("after", std::move(roots), std::nullopt, out.after_inputs);
    name_sizes(*out.after, symbols);
    return out;
  }

 private:
  /// Finds what is computed before and read later.
  void cross(const Node* node, Nodes& seen) {
    if (node->is_placeholder() || !seen.insert(node).second) return;
    if (later_.contains(node) || is_repeated(*node)) {
      for (const Node* input : node->inputs()) cross(input, seen);
    } else if (node->meta.tensor()) {
      crossing_.insert(node);
    } else {
      for (const Node* user : node->users())
        if (user->is(Op::getitem())) crossing_.insert(user);
    }
  }

  /// Adds inputs of the graph that give the symbols in metas, where what is taken gives only expressions of them.
  void give_symbols(const Nodes& copied, std::map<std::size_t, const Node*>& taken) const {
    const auto gives = [](const Node& node, const std::string& symbol) {
      const auto is = [&](SymExpr e) { return !e.is_int() && e.kind() == SymKind::Symbol && e.name() == symbol; };
      const TensorMeta* t = node.meta.tensor();
      return t ? std::ranges::any_of(t->sizes, is) : node.meta.sym() && is(*node.meta.sym());
    };
    std::set<std::string> symbols;
    for (const Node* node : copied) symbols.merge(symbols_of(node->meta));
    for (const auto& [index, node] : taken) symbols.merge(symbols_of(node->meta));
    for (const std::string& symbol : symbols) {
      if (std::ranges::any_of(taken, [&](const auto& t) { return gives(*t.second, symbol); })) continue;
      for (const Node* p : graph_.placeholders())
        if (gives(*p, symbol)) {
          taken.emplace(pool_.at(p), p);
          break;
        }
    }
  }

  /// A graph of `copied` and of what they read, up to values of the pool, which are its inputs. It returns `outputs`;
  /// nullopt: what the whole graph does.
  std::unique_ptr<Graph> part(const char* where, Nodes copied, const std::optional<std::vector<const Node*>>& outputs,
                              std::vector<std::size_t>& inputs) const {
    std::vector<const Node*> open(copied.begin(), copied.end());
    const Nodes roots = copied;
    std::map<std::size_t, const Node*> taken;
    const auto visit = [&](const Node* node) {
      const auto given = pool_.find(node);
      if (given != pool_.end() && !roots.contains(node))
        taken.emplace(given->second, node);
      else if (copied.insert(node).second)
        open.push_back(node);
    };
    if (outputs) std::ranges::for_each(*outputs, visit);
    if (!outputs) std::ranges::for_each(graph_.output()->inputs(), visit);
    while (!open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      std::ranges::for_each(node->inputs(), visit);
    }
    give_symbols(copied, taken);
    auto made = std::make_unique<Graph>(fmt::format("{}, {} {}", graph_.name, where, at_.name()));
    made->shapes = graph_.shapes;
    std::unordered_map<const Node*, Node*> own;
    for (const auto& [index, node] : taken) {
      Node* input = made->placeholder(node->name(), node->meta);
      if (node->is_placeholder()) input->note = node->note;
      input->origin = node->origin;
      own[node] = input;
      inputs.push_back(index);
    }
    const auto mapped = [&](Node* node) -> Arg { return own.at(node); };
    for (const Node* node : graph_) {
      if (!copied.contains(node)) continue;
      own[node] = made->copy_node(*node, mapped);
      if (node->op()->kind != OpKind::GetAttr) continue;
      if (const auto value = graph_.attributes.find(node->target); value != graph_.attributes.end())
        made->attributes.insert(*value);
      if (const Graph* child = graph_.child(node->target); child && !made->child(node->target))
        made->children.emplace_back(node->target, child->clone());
    }
    if (!outputs) {
      made->copy_node(*graph_.output(), mapped);
      return made;
    }
    std::vector<Arg> returned;
    for (const Node* node : *outputs) returned.emplace_back(own.at(node));
    made->set_output(Arg::tuple(std::move(returned)));
    return made;
  }

  /// The sizes become symbols of inputs, as s0 is, which no other symbol of the graph is called.
  void name_sizes(Graph& after, const std::set<std::string>& symbols) const {
    std::set<std::string> used;
    std::map<std::string, SymRange> ranges;
    for (const Node* node : graph_) used.merge(symbols_of(node->meta));
    if (graph_.shapes) {  // which knows symbols of the parts before, and their ranges
      for (const auto& [symbol, hint] : graph_.shapes->hints()) used.insert(symbol);
      ranges = graph_.shapes->ranges();
    }
    // The same graph has the same names when it is cut again: its shapes know the ranges from the first time.
    const auto may_be = [&](const std::string& name, const std::string& symbol) {
      if (used.contains(name)) return false;
      const auto known = ranges.find(name), wanted = ranges.find(symbol);
      if (known == ranges.end()) return true;
      const SymRange range = wanted == ranges.end() ? SymRange() : wanted->second;
      return known->second.low == range.low && known->second.high == range.high;
    };
    std::map<std::string, SymExpr> named;
    int number = 0;
    for (const std::string& symbol : symbols) {
      if (SymExpr::symbol(symbol).is_float()) continue;  // a number that is no size
      std::string name;
      do name = fmt::format("s{}", number++);
      while (!may_be(name, symbol));
      named.emplace(symbol, SymExpr::symbol(name));
      if (const auto range = ranges.find(symbol); range != ranges.end()) graph_.shapes->set_range(name, range->second);
    }
    const auto rename = [&](const std::string& symbol) -> std::optional<SymExpr> {
      const auto it = named.find(symbol);
      return it == named.end() ? std::nullopt : std::optional(it->second);
    };
    for (Node* node : after) for_each_expression(node->meta, [&](SymExpr& e) { e = e.substitute(rename); });
  }

  const Graph& graph_;
  const Node& at_;
  Nodes later_, crossing_;
  std::unordered_map<const Node*, std::size_t> pool_;
};

}  // namespace

std::optional<SplitGraph> split_at_values(const Graph& graph) {
  const auto [at, symbols] = first_unknown(graph);
  // The part after a view would not know of the memory that it shares with what is written.
  if (!at || at->is_placeholder() || (may_share_memory(*at) && writes(graph))) return std::nullopt;
  return Splitter(graph, *at).run(symbols);
}

}  // namespace partita::schedule
