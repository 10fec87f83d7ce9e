#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/diff/diff.h"
#include "core/diff/match_nodes.h"

namespace partita {

/// A graph that several runs have, with its nodes matched to those of the first run that has it.
struct MatchedGraph {
  std::string name;                                       ///< as the first run calls it: "aot_joint_graph"
  std::vector<const Artefact*> artefacts;                 ///< by run; null: it has none
  std::vector<std::shared_ptr<const Graph>> graphs;       ///< by run; shared where the text is the same; null: not read
  std::vector<std::shared_ptr<const NodeMatch>> matches;  ///< by run; null where the graph is the first run's own
  std::size_t first = 0;

  /// The graphs of matched compilations that are the same: by name and kind, else by kind, else each run's only one.
  static std::vector<MatchedGraph> of(const std::vector<const Compilation*>& compilations);
  /// Reads the graphs and matches their nodes. False when that was not needed, since only one run has the graph or,
  /// unless `same_too`, all texts are the same. Adds what cannot be read to `warnings`.
  bool read(std::vector<Diagnostic>& warnings, bool same_too = false);

  std::size_t runs() const { return artefacts.size(); }
  const Node* in_run(std::size_t run, const Node* of_first) const;  ///< null: there is none
  const Node* in_first(std::size_t run, const Node* of_run) const;  ///< null: there is none

  /// A row for which `artefacts` are filled in.
  DiffRow row(DiffAspect aspect, std::string what) const;
};

/// Nodes that differ, and inputs: those that only some have, other operators, arguments, inputs, sizes and types.
void compare_nodes(const MatchedGraph& graph, std::vector<DiffRow>& rows);
/// How often operators are called.
void compare_operators(const MatchedGraph& graph, std::vector<DiffRow>& rows);
/// What the forward keeps for the backward, with its bytes.
void compare_saved(const MatchedGraph& forward, const MatchedGraph& backward, std::vector<DiffRow>& rows);
/// The first collective that is not the same in all runs, as ranks must have it, which wait for each other.
void compare_collectives(const std::vector<Run>& runs, std::vector<DiffRow>& rows, std::vector<Diagnostic>& warnings);

}  // namespace partita
