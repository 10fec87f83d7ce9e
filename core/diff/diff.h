#pragma once
// What differs between whole compilations: files, folders, logs, the ranks of one run.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/diff/compared_runs.h"

namespace partita {

/// What a difference is about, the most telling first.
#define PARTITA_DIFF_ASPECTS(V)      \
  V(Collective, "collectives")       \
  V(Compilation, "compilations")     \
  V(GraphBreak, "graph breaks")      \
  V(Recompilation, "recompilations") \
  V(Option, "options")               \
  V(Guard, "guards")                 \
  V(Input, "inputs")                 \
  V(Call, "calls")                   \
  V(Operator, "operators")           \
  V(Saved, "saved values")           \
  V(Kernel, "kernels")               \
  V(Cache, "caches")                 \
  V(RunTime, "run times")            \
  V(Time, "compile times")           \
  V(Node, "nodes")

enum class DiffAspect : unsigned char {
#define V(name, text) name,
  PARTITA_DIFF_ASPECTS(V)
#undef V
};
/// As `partita diff` prints it: "operators".
std::string_view aspect_name(DiffAspect aspect);

/// What one run has where runs differ.
struct DiffCell {
  std::string text = {};               ///< empty: it has nothing
  const Artefact* artefact = nullptr;  ///< where it is; null when that is no single place
  std::string node = {};               ///< in that graph; empty: no node
};

/// Runs that have the same, the first run's group first.
struct DiffGroup {
  const DiffCell* cell;           ///< of its first run
  std::vector<std::size_t> runs;  ///< in order
};
/// The runs of a row, grouped by what they have.
std::vector<DiffGroup> groups_of(const std::vector<DiffCell>& cells);

struct DiffRow {
  DiffAspect aspect;
  std::string compilation;          ///< "0/0"; empty: of the whole run
  std::string what;                 ///< "aten.gelu.default", "guard_count", "operator"
  std::vector<DiffCell> cells;      ///< one for each run
  std::vector<std::string> graphs;  ///< where it holds, as "aot_joint_graph"; empty: not about a graph
  std::string where = {};           ///< line of the program
  bool follows = false;             ///< from another node that differs
  /// Times are never the same twice: they are told, and do not make runs differ.
  bool differs() const { return aspect != DiffAspect::Time && aspect != DiffAspect::RunTime; }
};

struct Diff {
  std::vector<Run> runs;
  std::vector<DiffRow> rows;         ///< by aspect; then in the order of compilations, graphs and nodes
  std::vector<Diagnostic> warnings;  ///< graphs that cannot be read, and so are not compared
  std::size_t matched_graphs = 0;    ///< that two runs have at least

  bool differs() const { return std::ranges::any_of(rows, &DiffRow::differs); }  ///< any row does
};

/// Compares what was opened: two or more, or a folder with the logs of several ranks. The result points into it. Error
/// diff.one for a single run.
Result<Diff> diff(const std::vector<const Loaded*>& opened, const Progress* progress = nullptr);

}  // namespace partita
