// Compares whole runs: matches compilations, compares their facts and graphs, and the collectives of all. Then marks
// rows that follow from others (same line, saved values, caches), merges equal ones and sorts by aspect.
#include "core/diff/diff.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/text.h"
#include "core/diff/compared_runs.h"
#include "core/diff/matched_graph.h"
#include "core/load/records.h"

namespace partita {
namespace {

/// Calls of one log times those of the other, between which a common sequence is looked for.
constexpr std::size_t most_pairs = 16'000'000;

using Calls = std::vector<std::string_view>;
constexpr std::size_t none = SIZE_MAX;

const Artefact* calls_of(const Run& run) {
  for (const Compilation& c : run.compilations)
    for (const Artefact* a : c.artefacts)
      if (!a->is_graph() && record_name(*a) == "calls") return a;
  return nullptr;
}

/// For each call of `a` its partner in `b`, or none. Partners are in order.
std::vector<std::size_t> partners(const Calls& a, const Calls& b) {
  std::vector<std::size_t> out(a.size(), none);
  std::size_t begin = 0, end = 0;
  while (begin < std::min(a.size(), b.size()) && a[begin] == b[begin]) out[begin] = begin, ++begin;
  while (end < std::min(a.size(), b.size()) - begin && a[a.size() - 1 - end] == b[b.size() - 1 - end]) {
    out[a.size() - 1 - end] = b.size() - 1 - end;
    ++end;
  }
  const std::size_t rows = a.size() - begin - end, columns = b.size() - begin - end;
  if (rows == 0 || columns == 0 || columns > most_pairs / rows) return out;
  // length[i][j]: of the longest sequence that a from i on and b from j on have in common.
  const auto at = [&](std::size_t i, std::size_t j) { return i * (columns + 1) + j; };
  std::vector<std::uint32_t> length((rows + 1) * (columns + 1));
  for (std::size_t i = rows; i-- > 0;)
    for (std::size_t j = columns; j-- > 0;)
      length[at(i, j)] = a[begin + i] == b[begin + j] ? length[at(i + 1, j + 1)] + 1
                                                      : std::max(length[at(i + 1, j)], length[at(i, j + 1)]);
  for (std::size_t i = 0, j = 0; i < rows && j < columns;)
    if (a[begin + i] == b[begin + j])
      out[begin + i] = begin + j, ++i, ++j;
    else
      (length[at(i + 1, j)] >= length[at(i, j + 1)] ? i : j) += 1;
  return out;
}

std::string joined(const Calls& calls, std::size_t begin, std::size_t end) {
  constexpr std::size_t most = 4;
  std::string out;
  for (std::size_t i = begin; i < std::min(end, begin + most); ++i)
    out += (out.empty() ? "" : "; ") + std::string(trimmed(calls[i]));
  return end - begin > most ? fmt::format("{}; and {} more", out, end - begin - most) : out;
}

/// Adds a row for each place where the calls of two logs of DebugMode are others. Logs of more runs, and those of one
/// alone, have none.
void compare_calls(const std::vector<Run>& runs, std::vector<DiffRow>& rows) {
  if (runs.size() != 2) return;
  const Artefact *const first = calls_of(runs[0]), *const second = calls_of(runs[1]);
  if (!first || !second) return;
  const auto texts = std::pair(first->text(), second->text());
  if (!texts.first || !texts.second) return;
  const Calls a = lines_of(*texts.first), b = lines_of(*texts.second);
  const std::vector<std::size_t> partner = partners(a, b);
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (i < a.size() && partner[i] == j) {
      ++i, ++j;
      continue;
    }
    const std::size_t i_begin = i, j_begin = j;
    while (i < a.size() && partner[i] == none) ++i;
    j = i < a.size() ? partner[i] : b.size();
    rows.push_back({DiffAspect::Call,
                    {},
                    fmt::format("call {}", i_begin + 1),
                    {{joined(a, i_begin, i), first}, {joined(b, j_begin, j), second}},
                    {}});
  }
}

struct FactsOf {
  DiffAspect aspect;
  Facts (*read)(const Compilation&);
  bool is_state = false;  ///< not something that happened so many times
};
constexpr FactsOf facts_of[] = {
    {DiffAspect::GraphBreak, break_facts},    {DiffAspect::Recompilation, recompilation_facts},
    {DiffAspect::Option, option_facts, true}, {DiffAspect::Guard, guard_facts, true},
    {DiffAspect::Kernel, kernel_facts},       {DiffAspect::Cache, cache_facts},
    {DiffAspect::Time, time_facts},
};

using Compilations = std::vector<const Compilation*>;

const Compilation& first_of(const Compilations& compilations) {
  return **std::ranges::find_if(compilations, [](const Compilation* c) { return c != nullptr; });
}

double number(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Seconds that differ by more than a run from the next.
bool is_telling_time(const std::vector<DiffCell>& cells) {
  double least = INFINITY, most = 0;
  for (const DiffCell& cell : cells) {
    least = std::min(least, number(cell.text));
    most = std::max(most, number(cell.text));
  }
  return most - least > 0.1 && most > 1.25 * least;
}

/// Of values that are lists, only the parts that differ: of [4, 8] and [6, 8] in long guards.
void keep_what_differs(std::vector<DiffCell>& cells) {
  std::vector<std::vector<std::string>> parts;
  for (const DiffCell& cell : cells) {
    std::vector<std::string>& of = parts.emplace_back(1);
    int depth = 0;
    for (std::size_t i = 0; i < cell.text.size(); ++i) {
      const char c = cell.text[i];
      depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
      if (c == ',' && depth == 0)
        of.emplace_back();
      else
        of.back() += c;
    }
  }
  const std::size_t count = parts.front().size();
  if (count < 2 || std::ranges::any_of(parts, [&](const auto& of) { return of.size() != count; })) return;
  for (DiffCell& cell : cells) cell.text.clear();
  for (std::size_t i = 0; i < count; ++i) {
    if (std::ranges::all_of(parts, [&](const auto& of) { return of[i] == parts.front()[i]; })) continue;
    for (std::size_t run = 0; run < cells.size(); ++run) {
      const std::size_t begin = std::min(parts[run][i].find_first_not_of(' '), parts[run][i].size());
      cells[run].text += (cells[run].text.empty() ? "" : ", ") + parts[run][i].substr(begin);
    }
  }
}

void compare_facts(const FactsOf& of, const Compilations& compilations, std::vector<DiffRow>& rows) {
  std::vector<std::string> names;  // in the order of the first compilation that has them
  std::map<std::string, std::vector<std::vector<std::string>>> values;
  for (std::size_t run = 0; run < compilations.size(); ++run) {
    if (!compilations[run]) continue;
    for (auto& [name, value] : of.read(*compilations[run])) {
      auto [entry, is_new] = values.try_emplace(name, compilations.size());
      if (is_new) names.push_back(name);
      entry->second[run].push_back(std::move(value));
    }
  }
  std::vector<DiffRow> only_some;
  for (const std::string& name : names) {
    DiffRow row{of.aspect, {}, name, {}, {}};
    for (std::vector<std::string>& of_run : values[name]) {
      std::ranges::sort(of_run);
      // A state holds once, however often a log repeats it: with a cold cache it has more records than with a warm one.
      if (of.is_state) of_run.erase(std::ranges::unique(of_run).begin(), of_run.end());
      row.cells.push_back({fmt::format("{}", fmt::join(of_run, "; "))});
    }
    // A run that lacks the compilation differs by that already. Only aspects that may explain the lack count it.
    std::vector<DiffCell> compared;
    for (std::size_t run = 0; run < compilations.size(); ++run)
      if (compilations[run] || of.aspect == DiffAspect::GraphBreak || of.aspect == DiffAspect::Recompilation)
        compared.push_back(row.cells[run]);
    if (std::ranges::all_of(compared, [&](const DiffCell& c) { return c.text == compared.front().text; })) continue;
    if (of.aspect == DiffAspect::Time && !is_telling_time(compared)) continue;
    if (of.aspect == DiffAspect::Guard) keep_what_differs(row.cells);
    const bool all_have = std::ranges::none_of(compared, [](const DiffCell& c) { return c.text.empty(); });
    (all_have ? rows : only_some).push_back(std::move(row));
  }
  // Facts that all runs have with other values say more than those that only some have.
  std::ranges::move(only_some, std::back_inserter(rows));
}

/// Rows that only some runs have, of compilations and of graphs.
void add_missing(const Compilations& compilations, const std::vector<MatchedGraph>& graphs,
                 std::vector<DiffRow>& rows) {
  const Compilation& any = first_of(compilations);
  if (std::ranges::find(compilations, nullptr) != compilations.end()) {
    DiffRow row{DiffAspect::Compilation, {}, any.code.empty() ? "compilation" : any.code, {}, {}};
    for (const Compilation* c : compilations)
      row.cells.push_back(c && !c->graphs().empty() ? DiffCell{"compiled", c->graphs().front()} : DiffCell{});
    if (!graphs.empty()) rows.push_back(std::move(row));
  }
  for (const MatchedGraph& graph : graphs) {
    DiffRow row = graph.row(DiffAspect::Compilation, graph.name);
    row.graphs.clear();
    bool missing = false;
    for (std::size_t run = 0; run < graph.runs(); ++run) {
      missing |= compilations[run] && !graph.artefacts[run];
      if (graph.artefacts[run]) row.cells[run].text = fmt::format("{} graph", kind_name(graph.artefacts[run]->kind));
    }
    if (missing) rows.push_back(std::move(row));
  }
}

/// A difference that several graphs of a compilation show is one row. `rows` are those of a compilation.
void merge(std::vector<DiffRow>& rows) {
  std::map<std::string, std::size_t> row_of;
  std::map<std::string, int> copies;  // of equal rows in one graph
  std::vector<DiffRow> merged;
  for (DiffRow& row : rows) {
    std::string key = fmt::format("{}\n{}\n{}", static_cast<int>(row.aspect), row.what, row.where);
    for (const DiffCell& cell : row.cells) key += "\n" + cell.text;
    if (row.graphs.empty()) {
      merged.push_back(std::move(row));
      continue;
    }
    key += fmt::format("\n{}", copies[key + row.graphs.front()]++);
    const auto [found, is_new] = row_of.try_emplace(key, merged.size());
    if (is_new) {
      merged.push_back(std::move(row));
      continue;
    }
    DiffRow& first = merged[found->second];
    first.graphs.push_back(row.graphs.front());
    first.follows &= row.follows;
  }
  rows = std::move(merged);
}

/// A difference at a line of the program follows from the one at this line in an earlier graph.
void follow_lines(std::vector<DiffRow>& rows) {
  std::map<std::string, std::string> graph_of;  // by line
  for (DiffRow& row : rows) {
    if (row.aspect != DiffAspect::Node || row.follows || row.where.empty()) continue;
    const auto [found, is_new] = graph_of.try_emplace(row.where, row.graphs.front());
    row.follows = !is_new && found->second != row.graphs.front();
  }
}

/// Inputs of later graphs that are calls of the forward are values that it saves, which are told as such.
void follow_saved(const MatchedGraph* forward, std::vector<DiffRow>& rows) {
  if (!forward || forward->graphs.empty()) return;
  for (DiffRow& row : rows) {
    if (row.aspect != DiffAspect::Input) continue;
    for (std::size_t run = 0; run < row.cells.size(); ++run) {
      const Graph* graph = forward->graphs[run].get();
      const Node* node = graph && !row.cells[run].node.empty() ? graph->find(row.cells[run].node) : nullptr;
      row.follows |= node && !node->is_placeholder();
    }
  }
}

/// A run whose cache has the code does not make the graphs that the other makes on the way to it.
void follow_caches(std::vector<DiffRow>& rows) {
  std::set<std::size_t> hit;  // runs
  for (const DiffRow& row : rows)
    for (std::size_t run = 0; row.aspect == DiffAspect::Cache && run < row.cells.size(); ++run)
      if (row.cells[run].text.starts_with("hit")) hit.insert(run);
  for (DiffRow& row : rows)
    for (std::size_t run = 0; row.aspect == DiffAspect::Compilation && run < row.cells.size(); ++run)
      row.follows |= row.cells[run].text.empty() && hit.contains(run);
}

/// Options hold for a whole run, and a log repeats them for each compilation.
void drop_repeated_options(std::vector<DiffRow>& rows) {
  std::set<std::string> seen;
  std::erase_if(rows, [&](const DiffRow& row) {
    if (row.aspect != DiffAspect::Option) return false;
    std::string key = row.what;
    for (const DiffCell& cell : row.cells) key += "\n" + cell.text;
    return !seen.insert(key).second;
  });
}

void compare_graphs(std::vector<MatchedGraph>& graphs, std::vector<DiffRow>& rows, Diff& out) {
  MatchedGraph *forward = nullptr, *backward = nullptr;
  for (MatchedGraph& graph : graphs) {
    const ArtefactKind kind = graph.artefacts[graph.first]->kind;
    if (kind == ArtefactKind::Forward && !forward) forward = &graph;
    if (kind == ArtefactKind::Backward && !backward) backward = &graph;
    out.matched_graphs += std::ranges::count(graph.artefacts, nullptr) + 1 < static_cast<std::ptrdiff_t>(graph.runs());
    if (!graph.read(out.warnings)) continue;
    compare_nodes(graph, rows);
    compare_operators(graph, rows);
  }
  follow_saved(forward, rows);
  if (!forward || !backward) return;
  const auto differs = [](const MatchedGraph& g) {
    return std::ranges::any_of(g.graphs, [](const auto& graph) { return graph != nullptr; });
  };
  if (!differs(*forward) && !differs(*backward)) return;
  for (MatchedGraph* graph : {forward, backward})
    if (!differs(*graph)) graph->read(out.warnings, true);
  compare_saved(*forward, *backward, rows);
}

}  // namespace

std::string_view aspect_name(DiffAspect aspect) {
  constexpr std::string_view names[] = {
#define V(name, text) text,
      PARTITA_DIFF_ASPECTS(V)
#undef V
  };
  return names[static_cast<std::size_t>(aspect)];
}

std::vector<DiffGroup> groups_of(const std::vector<DiffCell>& cells) {
  std::vector<DiffGroup> groups;
  for (std::size_t run = 0; run < cells.size(); ++run) {
    auto group = std::ranges::find_if(
        groups, [&](const DiffGroup& g) { return g.cell->text == cells[run].text && g.cell->node == cells[run].node; });
    if (group == groups.end()) group = groups.insert(group, {&cells[run], {}});
    group->runs.push_back(run);
  }
  return groups;
}

Result<Diff> diff(const std::vector<const Loaded*>& opened, const Progress* progress) {
  Diff out;
  out.runs = runs_of(opened);
  if (out.runs.size() < 2)
    return input_error("diff.one",
                       "there is only one run to compare; give two, or a folder with the logs of several ranks",
                       {.file = opened.empty() ? std::string() : opened.front()->path});
  const std::vector<Compilations> matched = match_compilations(out.runs);
  double done = 0;
  bool graphs_differ = false;
  for (const Compilations& compilations : matched) {
    const Compilation& any = first_of(compilations);
    TRY_DO(step(progress, done++ / static_cast<double>(matched.size()), "compilation " + any.key));
    std::vector<MatchedGraph> graphs = MatchedGraph::of(compilations);
    std::vector<DiffRow> rows;
    add_missing(compilations, graphs, rows);
    for (const FactsOf& of : facts_of) compare_facts(of, compilations, rows);
    const std::size_t texts = rows.size();
    compare_graphs(graphs, rows, out);
    graphs_differ |= rows.size() > texts || std::ranges::find(compilations, nullptr) != compilations.end();
    merge(rows);
    follow_lines(rows);
    follow_caches(rows);
    for (DiffRow& row : rows) {
      row.compilation = any.key;
      out.rows.push_back(std::move(row));
    }
  }
  // Where no graph differs, no collective does, if all runs compiled in the same order.
  for (std::size_t run = 0; run < out.runs.size(); ++run)
    graphs_differ |= !std::ranges::is_sorted(matched, {}, [&](const Compilations& c) { return c[run]; });
  compare_calls(out.runs, out.rows);
  if (graphs_differ) compare_collectives(out.runs, out.rows, out.warnings);
  drop_repeated_options(out.rows);
  std::ranges::stable_sort(out.rows, {}, [](const DiffRow& row) { return std::pair(row.aspect, row.follows); });
  return out;
}

}  // namespace partita
