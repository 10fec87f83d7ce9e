#include <algorithm>

#include <fmt/format.h>

#include "core/diff/matched_graph.h"
#include "core/ir/print.h"
#include "core/load/records.h"
#include "core/ops/facts/family.h"
#include "core/ops/schema/schema.h"

namespace partita {
namespace {

/// Does it exchange data with other ranks? Waiting for what was exchanged does not.
bool exchanges(const Op* op) {
  if (!op->is_call() || family_of(op) != Family::Collective) return false;
  const Schema* schema = find_schema(op);
  return !schema || schema->index_of("group_name") >= 0 || schema->index_of("process_group") >= 0;
}

/// The graphs of a compilation that are nearest to what runs, each call once.
std::vector<const Artefact*> run_graphs(const Compilation& c) {
  using Wanted = bool (*)(const Artefact&);
  constexpr Wanted wanted[] = {
      [](const Artefact& a) { return record_name(a) == "inductor_post_grad_graph"; },
      [](const Artefact& a) {
        return a.kind == ArtefactKind::Forward || a.kind == ArtefactKind::Backward || a.kind == ArtefactKind::Inference;
      },
      [](const Artefact& a) { return a.kind == ArtefactKind::Joint; },
  };
  const std::vector<const Artefact*> graphs = c.graphs();
  for (const Wanted w : wanted) {
    std::vector<const Artefact*> out;
    std::ranges::copy_if(graphs, std::back_inserter(out), [&](const Artefact* a) { return w(*a); });
    if (!out.empty()) return out;
  }
  return graphs.empty() ? graphs : std::vector(1, graphs.front());
}

struct Exchange {
  std::string compilation, text;
  DiffCell cell;
};

std::vector<Exchange> exchanges_of(const Run& run, std::vector<Diagnostic>& warnings) {
  std::vector<Exchange> out;
  for (const Compilation& c : run.compilations)
    for (const Artefact* a : run_graphs(c)) {
      const auto graph = a->graph();
      if (!graph) {
        warnings.push_back(graph.error());
        continue;
      }
      for (const Node* n : **graph) {
        if (!exchanges(n->op())) continue;
        std::string text = fmt::format("{}(", n->op()->name);
        const auto type = [](const Node* input) { return Arg(ArgName{annotation(input->meta)}); };
        for (const Arg& arg : n->args()) text += (text.ends_with('(') ? "" : ", ") + print(map_nodes(arg, type));
        out.push_back({c.key, text + ")", {{}, a, n->name()}});
      }
    }
  return out;
}

}  // namespace

void compare_collectives(const std::vector<Run>& runs, std::vector<DiffRow>& rows, std::vector<Diagnostic>& warnings) {
  std::vector<std::vector<Exchange>> all;
  std::size_t longest = 0;
  for (const Run& run : runs) {
    all.push_back(exchanges_of(run, warnings));
    longest = std::max(longest, all.back().size());
  }
  for (std::size_t at = 0; at < longest; ++at) {
    const auto text = [&](const std::vector<Exchange>& of) { return at < of.size() ? of[at].text : std::string(); };
    if (std::ranges::all_of(all, [&](const auto& of) { return text(of) == text(all.front()); })) continue;
    DiffRow row{DiffAspect::Collective, {}, fmt::format("first divergence: number {} of {}", at + 1, longest), {}, {}};
    for (const std::vector<Exchange>& of : all) {
      if (at >= of.size()) {
        row.cells.push_back({fmt::format("ends after {}", of.size())});
        continue;
      }
      row.cells.push_back(of[at].cell);
      row.cells.back().text = of[at].text;
      if (row.compilation.empty()) row.compilation = of[at].compilation;
    }
    rows.push_back(std::move(row));
    return;
  }
}

}  // namespace partita
