#pragma once
#include <functional>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/compare/compare.h"
#include "core/ir/graph.h"

namespace partita {

/// Runs a graph on a backend. Inputs may be written to.
using Runner = std::function<Result<std::vector<Value>>(const Graph& graph, std::vector<Value> inputs)>;

/// Makes deep copies. Each storage is copied once, so that inputs that share memory still do.
Result<std::vector<Value>> copy_values(const std::vector<Value>& values);

/// Computes, on this backend, the value that a row of a report is about: a node's tensor, or a result of the graph when
/// `name` is "output.N". Error compare.name when there is no such row.
Result<Value> value_of(const Graph& graph, const std::vector<Value>& inputs, const Runner& run,
                       const std::string& name);

struct PerNodeOptions {
  Tolerance tolerance;
  Runner baseline;  ///< runs in double, to separate rounding from errors; may be null
  /// The same with values that rounding might give, for the seed: interpret_shifted(). Empty: the reference's values
  /// are taken for right.
  std::function<Runner(unsigned seed)> shifted = {};
  std::size_t batch_bytes = std::size_t{256} << 20;  ///< limit of node values held at once
  const Progress* progress = nullptr;
  bool nodes = true;        ///< false: the graph's results only
  bool own = false;         ///< also run each node on the expected values of its inputs: Difference::own
  bool statistics = false;  ///< of both sides of each row
};

/// One of several ways to compute a graph's values.
struct Column {
  std::string name;
  Runner run;                    ///< null: `past`
  const Report* past = nullptr;  ///< of an earlier comparison, whose found side this is; only its statistics are known
};

/// Runs the reference and each column on the graph with every node's tensor as an extra output, batch by batch, and
/// compares the columns with the reference; rows that differ say which row they inherited it from. An extra output
/// keeps a compiler from fusing that node away, so this compares nodes, not fused kernels. The graph's own outputs come
/// last, as "output.N", and are compared without extra outputs. A column whose process dies ends with a row that says
/// so; when the reference's does, all do. Returns a report for each column. Precondition: the reference runs.
Result<std::vector<Report>> compare_columns(const Graph& graph, const std::vector<Value>& inputs,
                                            const Column& reference, std::span<const Column> columns,
                                            const PerNodeOptions& options = {});
/// The same with one column.
Result<Report> compare_nodes(const Graph& graph, const std::vector<Value>& inputs, const Runner& expected,
                             const Runner& found, const PerNodeOptions& options = {});

/// Each result of the graph, as "output.N", without a look inside; a death is a row as above.
Result<Report> compare_outputs(const Graph& graph, const std::vector<Value>& inputs, const Runner& expected,
                               const Runner& found, const Tolerance& tolerance);

/// Graphs with one call for each of these nodes, which reads the values of its inputs from placeholders.
struct SingleCalls {
  std::unique_ptr<Graph> graph;
  std::vector<const Node*> given;  ///< what the placeholders after the original graph's own stand for
  std::vector<const Node*> nodes;  ///< by output; those with effects and those that read sub graphs are left out
};
/// Error compare.writes when nodes read what other nodes write to: then no value belongs to a node for good.
Result<SingleCalls> single_calls(const Graph& graph, std::span<const Node* const> nodes);

/// The row for a death(): it is named after the first node that the process was at.
Difference row_of_death(const Diagnostic& death);

}  // namespace partita
