#pragma once
// Several ways to compute what an artefact computes, compared with one of them.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/tasks/run_artefact.h"
#include "core/compare/side_values.h"

namespace partita {

/// A column of a comparison, or its reference.
struct CompareSide {
  enum class Kind : unsigned char { Backend, Results, Past } kind = Kind::Backend;
  std::string name;                  ///< as it was given
  const Backend* backend = nullptr;  ///< of a backend, which runs with
  Config config = partita::config();
  std::string plant;                       ///< its fault, as `--plant` takes it; empty: that of the request
  std::shared_ptr<PlantWatch> watch = {};  ///< of that fault
  TensorFile results;                      ///< stored ones
  std::vector<Report> past;                ///< of earlier comparisons; their found sides are the column
};

/// What parse_side() takes, for --help.
std::string side_help();
/// "cpu", "cpu+fuse=false+plant=aten.tanh.default:wrong", "stored" (in `io`), "file:OUT", "past:12" or "past:12+13"
/// (rows of the store). Errors backend.unknown, config.unknown, config.value, cli.usage, compare.stored, compare.past.
Result<CompareSide> parse_side(const std::string& text, const TensorFile& io, bool train);

struct CompareOptions {
  Tolerance tolerance;
  /// Every node of the forward and, with RunRequest::train, the backward graph, which are those that the configuration
  /// makes; a column's own configuration is its compiler's. Columns without nodes, or whose configuration makes other
  /// graphs, are compared by the program's results.
  bool per_node = false;
};

/// A report for each graph and column, graph by graph; those of one graph follow each other. Error cli.usage for a
/// reference that cannot be one.
Result<std::vector<Report>> compare_sides(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                                          const CompareSide& reference, std::span<const CompareSide> columns,
                                          const CompareOptions& options, const std::shared_ptr<CodeStore>& store);

/// Compares every node of a graph of ATen calls, as it is, on these inputs: a report for each side after the first,
/// which is the reference. Error cli.usage for a side that is no backend.
Result<std::vector<Report>> compare_graph(const Graph& graph, const std::vector<Value>& inputs,
                                          const RunRequest& request, std::span<const CompareSide> sides,
                                          const Tolerance& tolerance);

/// The values behind a row of compare_sides(): of the reference, then of each column. `graph`: of the row's report;
/// empty: the first graph that has such a row, the results last. Error compare.name when none has.
Result<std::vector<SideValue>> values_of_sides(const Artefact& artefact, const TensorFile& io,
                                               const RunRequest& request, const CompareSide& reference,
                                               std::span<const CompareSide> columns, const std::string& graph,
                                               const std::string& row, const std::shared_ptr<CodeStore>& store);

/// What the window's Compare tab asks.
struct CompareRequest {
  std::string expected;            ///< the reference, what all columns are compared with, as parse_side() takes it
  std::vector<std::string> found;  ///< the columns, likewise
  bool per_node = true;
  Tolerance tolerance;
  std::string inputs;  ///< path of an IO file; empty: the archive's samples, else made up
  bool train = false;  ///< the forward and backward that are made of the graph
};
/// compare_sides() as the window asks it, compiled code in `worker`. The side kPlanted is the default compiler with the
/// fault `plant`.
Result<std::vector<Report>> asked_reports(const Artefact& artefact, const CompareRequest& asked,
                                          const std::string& plant, const WorkerOptions& worker,
                                          const Progress& progress);
/// values_of_sides() of a row of such a comparison.
Result<std::vector<SideValue>> asked_values(const Artefact& artefact, const CompareRequest& asked,
                                            const std::string& plant, const WorkerOptions& worker,
                                            const std::string& graph, const std::string& row, const Progress& progress);

}  // namespace partita
