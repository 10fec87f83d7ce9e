// Compares one graph of several runs: its nodes are matched to those of the first run, and rows tell where presence,
// operator, arguments, inputs or type differ. Also operator counts, saved values, collectives.
#include "core/diff/matched_graph.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/ir/print.h"
#include "core/load/records.h"

namespace partita {
namespace {

/// With the number of a copy, which record_name leaves out.
std::string graph_name(const Artefact& a) {
  return a.id.substr(static_cast<std::size_t>(record_name(a).data() - a.id.data()));
}

std::string source_line(const Node& node) {
  if (!node.origin || node.origin->of_user().file.empty()) return {};
  return fmt::format("{}:{}", node.origin->of_user().file, node.origin->of_user().line);
}

/// The call without names: aten.add.Tensor(_, 2).
std::string call_text(const Node& node) {
  const auto blank = [](const Node*) { return Arg(ArgName{"_"}); };
  std::string text;
  for (const Arg& a : node.args()) text += (text.empty() ? "" : ", ") + print(map_nodes(a, blank));
  for (const auto& [name, a] : node.kwargs())
    text += (text.empty() ? "" : ", ") + name + "=" + print(map_nodes(a, blank));
  return fmt::format("{}({})", node.op()->name + node.target, text);
}

std::string kind_of(const Node& node) {
  return node.is_placeholder() ? "input" : node.is_output() ? "output" : node.op()->name;
}

std::string with_annotation(const Node& node) {
  const std::string type = annotation(node.meta);
  return kind_of(node) + (type.empty() ? "" : " " + type);
}

/// The sizes that a call is given change with those of its inputs.
bool differ_in_numbers_only(const Node& a, const Node& b) {
  const auto without_numbers = [](std::string text) {
    std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '-'; });
    return text;
  };
  return without_numbers(call_text(a)) == without_numbers(call_text(b));
}

enum class Change : unsigned char { None, Only, Operator, Arguments, Inputs, Result };

constexpr std::string_view change_name(Change change) {
  constexpr std::string_view names[] = {"", "only some have", "operator", "arguments", "inputs", "result"};
  return names[static_cast<std::size_t>(change)];
}

/// A node of the first run, or one that the first run lacks, with those of the others.
struct Line {
  std::vector<const Node*> nodes;  ///< by run; null: none
  const Node* any() const {
    return *std::ranges::find_if(nodes, [](const Node* n) { return n != nullptr; });
  }
};

class Comparison {
 public:
  explicit Comparison(const MatchedGraph& graph) : g_(graph) {}

  void add_rows(std::vector<DiffRow>& rows) {
    for (const Line& line : lines()) {
      Change change = Change::None;
      bool follows = true;
      for (std::size_t run = 0; run < g_.runs(); ++run) {
        if (!g_.graphs[run] || run == g_.first) continue;
        const Node *a = line.nodes[g_.first], *b = line.nodes[run];
        const Change here = change_of(run, a, b);
        if (here == Change::None) continue;
        if (change == Change::None || here < change) change = here;
        follows &= follows_from_input(run, here, a, b);
      }
      if (change != Change::None) rows.push_back(row_of(line, change, follows));
    }
  }

 private:
  /// In the order of the first run's nodes; what others have beside them stands after what precedes it there.
  std::vector<Line> lines() const {
    std::vector<Line> lines;
    std::map<const Node*, std::vector<Line>> after;  // by node of the first run; null: at the beginning
    for (std::size_t run = 0; run < g_.runs(); ++run) {
      if (!g_.graphs[run] || g_.graphs[run] == g_.graphs[g_.first]) continue;
      const Node* previous = nullptr;
      for (const Node* n : *g_.graphs[run]) {
        if (const Node* same = g_.in_first(run, n)) {
          previous = same;
          continue;
        }
        std::vector<Line>& extra = after[previous];
        // The same in several runs is one line, as are runs with the same text.
        auto line = std::ranges::find_if(extra, [&](const Line& l) {
          return !l.nodes[run] && call_text(*l.any()) == call_text(*n) && source_line(*l.any()) == source_line(*n);
        });
        if (line == extra.end()) line = extra.insert(line, Line{std::vector<const Node*>(g_.runs())});
        line->nodes[run] = n;
      }
    }
    const auto add_after = [&](const Node* node) {
      if (const auto found = after.find(node); found != after.end())
        lines.insert(lines.end(), found->second.begin(), found->second.end());
    };
    add_after(nullptr);
    for (const Node* n : *g_.graphs[g_.first]) {
      Line line{std::vector<const Node*>(g_.runs())};
      for (std::size_t run = 0; run < g_.runs(); ++run)
        if (g_.graphs[run]) line.nodes[run] = g_.in_run(run, n);
      lines.push_back(std::move(line));
      add_after(n);
    }
    return lines;
  }

  Change change_of(std::size_t run, const Node* a, const Node* b) const {
    if (!a && !b) return Change::None;
    if (!a || !b) return Change::Only;
    if (a == b) return Change::None;
    if (a->op() != b->op()) return Change::Operator;
    if (!a->is_placeholder() && call_text(*a) != call_text(*b)) return Change::Arguments;
    const std::vector<Node*> inputs = a->inputs(), others = b->inputs();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (g_.in_run(run, inputs[i]) != others[i]) return Change::Inputs;
    return same_annotation(a->meta, b->meta) ? Change::None : Change::Result;
  }

  bool follows_from_input(std::size_t run, Change change, const Node* a, const Node* b) const {
    if (change == Change::Only || change == Change::Operator) return false;
    if (change == Change::Arguments && !differ_in_numbers_only(*a, *b)) return false;
    const std::vector<Node*> inputs = a->inputs(), others = b->inputs();
    bool follows = false;
    for (std::size_t i = 0; i < std::min(inputs.size(), others.size()); ++i) {
      const Node *x = inputs[i], *y = others[i];
      if (g_.in_run(run, x) == y) {
        follows |= x->op() != y->op() || !same_annotation(x->meta, y->meta);
      } else {
        if (g_.in_run(run, x) && g_.in_first(run, y)) return false;  // wired to another node that both have
        follows = true;
      }
    }
    return follows;
  }

  DiffRow row_of(const Line& line, Change change, bool follows) const {
    const Node* any = line.any();
    DiffRow row = g_.row(any->is_placeholder() ? DiffAspect::Input : DiffAspect::Node,
                         fmt::format("{} of {}", change_name(change), kind_of(*any)));
    if (any->is_placeholder()) row.what = "size or type of an input";
    if (change == Change::Only) row.what = fmt::format("{} {}", change_name(change), kind_of(*any));
    if (change == Change::Operator) row.what = change_name(change);
    row.where = source_line(*any);
    row.follows = follows;
    for (std::size_t run = 0; run < g_.runs(); ++run)
      if (const Node* n = line.nodes[run]) row.cells[run] = {text_of(*n, change), g_.artefacts[run], n->name()};
    return row;
  }

  static std::string text_of(const Node& n, Change change) {
    if (n.is_output()) return fmt::format("{} values", n.graph().outputs().size());
    if (change == Change::Arguments) return call_text(n);
    if (change == Change::Result) return annotation(n.meta);
    if (change != Change::Inputs) return with_annotation(n);
    std::string text;
    for (const Node* input : n.inputs()) text += (text.empty() ? "" : ", ") + with_annotation(*input);
    return text;
  }

  const MatchedGraph& g_;
};

}  // namespace

const Node* MatchedGraph::in_run(std::size_t run, const Node* of_first) const {
  return matches[run] ? matches[run]->in_b(of_first) : of_first;
}

const Node* MatchedGraph::in_first(std::size_t run, const Node* of_run) const {
  return matches[run] ? matches[run]->in_a(of_run) : of_run;
}

DiffRow MatchedGraph::row(DiffAspect aspect, std::string what) const {
  DiffRow row{aspect, {}, std::move(what), std::vector<DiffCell>(runs()), {name}};
  for (std::size_t run = 0; run < runs(); ++run) row.cells[run].artefact = artefacts[run];
  return row;
}

std::vector<MatchedGraph> MatchedGraph::of(const std::vector<const Compilation*>& compilations) {
  std::vector<MatchedGraph> rows;
  for (std::size_t run = 0; run < compilations.size(); ++run) {
    if (!compilations[run]) continue;
    std::vector<const Artefact*> left = compilations[run]->graphs();
    const std::size_t known = rows.size();
    const bool only_ones = known == 1 && left.size() == 1;
    for (int way = 0; way < 3; ++way)
      for (std::size_t i = 0; i < known; ++i) {
        MatchedGraph& row = rows[i];
        if (row.artefacts[run]) continue;
        const Artefact& like = *row.artefacts[row.first];
        const auto found = std::ranges::find_if(left, [&](const Artefact* a) {
          return way == 2 ? only_ones : a->kind == like.kind && (way == 1 || graph_name(*a) == row.name);
        });
        if (found == left.end()) continue;
        row.artefacts[run] = *found;
        left.erase(found);
      }
    for (const Artefact* a : left) {
      MatchedGraph row{graph_name(*a), std::vector<const Artefact*>(compilations.size()), {}, {}, run};
      row.artefacts[run] = a;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

bool MatchedGraph::read(std::vector<Diagnostic>& warnings, bool same_too) {
  graphs.assign(runs(), nullptr);
  matches.assign(runs(), nullptr);
  std::map<std::string, std::shared_ptr<const Graph>> by_text;
  std::vector<std::string> texts(runs());
  for (std::size_t run = 0; run < runs(); ++run) {
    if (!artefacts[run]) continue;
    auto text = artefacts[run]->text();
    if (!text) {
      warnings.push_back(std::move(text).error());
      continue;
    }
    by_text[texts[run] = *std::move(text)];
  }
  if (by_text.size() < (same_too ? 1 : 2)) return false;
  for (std::size_t run = 0; run < runs(); ++run) {
    if (!artefacts[run] || texts[run].empty()) continue;
    std::shared_ptr<const Graph>& graph = by_text[texts[run]];
    if (!graph) {
      auto made = artefacts[run]->graph();
      if (!made) {
        warnings.push_back(std::move(made).error());
        continue;
      }
      graph = *std::move(made);
    }
    graphs[run] = graph;
  }
  const auto readable = std::ranges::find_if(graphs, [](const auto& g) { return g != nullptr; });
  if (readable == graphs.end()) return false;
  first = static_cast<std::size_t>(readable - graphs.begin());
  std::map<const Graph*, std::shared_ptr<const NodeMatch>> of;
  for (std::size_t run = 0; run < runs(); ++run) {
    if (!graphs[run] || graphs[run] == graphs[first]) continue;
    std::shared_ptr<const NodeMatch>& match = of[graphs[run].get()];
    if (!match) match = std::make_shared<const NodeMatch>(*graphs[first], *graphs[run]);
    matches[run] = match;
  }
  return true;
}

void compare_nodes(const MatchedGraph& graph, std::vector<DiffRow>& rows) {
  Comparison(graph).add_rows(rows);
}

void compare_operators(const MatchedGraph& graph, std::vector<DiffRow>& rows) {
  std::map<std::string, std::vector<std::size_t>> counts;
  for (std::size_t run = 0; run < graph.runs(); ++run) {
    if (!graph.graphs[run]) continue;
    for (const Node* n : *graph.graphs[run]) {
      if (!n->op()->is_call()) continue;
      std::vector<std::size_t>& count = counts[n->op()->name];
      count.resize(graph.runs());
      ++count[run];
    }
  }
  for (const auto& [name, count] : counts) {
    DiffRow row = graph.row(DiffAspect::Operator, name);
    bool differs = false;
    for (std::size_t run = 0; run < graph.runs(); ++run) {
      if (!graph.graphs[run]) continue;
      differs |= count[run] != count[graph.first];
      row.cells[run].text = std::to_string(count[run]);
    }
    if (differs) rows.push_back(std::move(row));
  }
}

void compare_saved(const MatchedGraph& forward, const MatchedGraph& backward, std::vector<DiffRow>& rows) {
  // Of each value that a run saves, the line of the first run's forward, or its own where the first has none.
  std::vector<std::pair<const Node*, DiffRow>> saved;
  DiffRow all = forward.row(DiffAspect::Saved, "all saved values");
  for (std::size_t run = 0; run < forward.runs(); ++run) {
    const auto& graph = forward.graphs[run];
    if (!graph || !backward.graphs[run]) continue;
    std::size_t count = 0;
    SymExpr sum = 0;
    for (const Node* input : backward.graphs[run]->placeholders()) {
      // The backward calls what the forward saves by the forward's names.
      const Node* node = graph->find(input->name());
      if (!node) continue;
      const TensorMeta* tensor = node->meta.tensor();
      const SymExpr bytes = tensor ? byte_size(*tensor) : SymExpr(0);
      const auto known = graph->shapes->hint(bytes);
      ++count;
      sum = sum + bytes;
      const Node* same = forward.in_first(run, node);
      auto row = std::ranges::find_if(saved, [&](const auto& s) { return s.first == (same ? same : node); });
      if (row == saved.end()) {
        row = saved.insert(row, {same ? same : node, forward.row(DiffAspect::Saved, kind_of(*node))});
        row->second.where = source_line(*node);
      }
      row->second.cells[run] = {
          fmt::format("{} {} bytes", annotation(node->meta), known ? std::to_string(*known) : bytes.str()),
          forward.artefacts[run], node->name()};
    }
    const auto known = graph->shapes->hint(sum);
    all.cells[run].text = fmt::format("{} of {} bytes", count, known ? std::to_string(*known) : sum.str());
  }
  saved.insert(saved.begin(), {nullptr, std::move(all)});
  for (auto& [node, row] : saved)
    if (std::ranges::any_of(row.cells, [&](const DiffCell& c) { return c.text != row.cells[forward.first].text; }))
      rows.push_back(std::move(row));
}

}  // namespace partita
