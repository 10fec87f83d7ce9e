#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

enum class Partitioner : unsigned char {
  Default,  ///< saves what eager's forward would have saved
  MinCut,   ///< saves the cheapest set of values; the backward recomputes cheap operators
};

Partitioner configured_partitioner();         ///< the configuration's
std::optional<double> given_memory_budget();  ///< the configuration's; unset: nobody set it

struct PartitionOptions {
  Partitioner partitioner = configured_partitioner();
  /// Number of the joint graph's outputs that are the forward's; unset: as find_joint_parts() finds it.
  std::optional<std::size_t> forward_outputs = {};
  std::vector<std::string> save = {};       ///< names of nodes to save, whatever that costs
  std::vector<std::string> recompute = {};  ///< names of nodes to recompute in the backward
  /// 1: recompute only what is almost free. 0: save only inputs and random values. Between: save at most this share of
  /// the bytes between the two, with the least added arithmetic that is found. Unset: as memory_budget_of() says.
  std::optional<double> memory_budget = given_memory_budget();
  /// Numbers and flags of torch._functorch.config under which PyTorch cut the graph, by name; null: not known.
  std::shared_ptr<const std::map<std::string, double>> functorch = {};
};
/// The budget under which a graph is cut: the options', PyTorch's of torch._functorch.config, or the configuration's.
double memory_budget_of(const PartitionOptions& options);

/// A value that the forward saves for the backward.
struct SavedValue {
  std::string name;
  std::int64_t bytes = 0;
  bool is_input = false;   ///< a placeholder; needs no memory beyond what the caller holds
  bool is_symbol = false;  ///< a number
  std::string why;
};

struct Partition {
  std::unique_ptr<Graph> forward;   ///< returns the forward's outputs, then saved tensors, then saved numbers
  std::unique_ptr<Graph> backward;  ///< inputs: saved numbers, saved tensors, tangents; returns the gradients
  double memory_budget = 1;         ///< under which it was cut
  std::size_t forward_outputs = 0;  ///< number of outputs before the saved values
  /// For each gradient of the backward, its primal among those that are no seed and no token. It is the same for
  /// several: the inner tensors of a gradient that is a tensor subclass.
  std::vector<std::size_t> gradient_of;
  std::vector<SavedValue> saved;        ///< in the order in which the forward returns them
  std::size_t saved_symbols = 0;        ///< number of entries at the end of `saved` that are numbers
  std::vector<std::string> recomputed;  ///< calls that are in both graphs
  std::int64_t activation_bytes = 0;    ///< of saved tensors that are not inputs
  std::int64_t input_bytes = 0;         ///< of saved inputs
  /// Estimated arithmetic that recomputing adds; an expression where symbols have no hints.
  SymExpr recomputed_operations = 0;
};

/// Is this a joint graph? Its inputs are all primals, then the tangents; its outputs are the forward's, then a gradient
/// per primal.
bool is_joint(const Graph& graph);

/// Splits a joint graph. Symbolic sizes count by their hints, as 4096 without one. Errors: partition.pin for a node
/// that cannot be pinned this way, partition.joint when the graph is not a joint graph, partition.outputs when it does
/// not tell how many outputs are the forward's.
Result<Partition> partition(const Graph& joint, const PartitionOptions& options = {});

struct BudgetPoint {
  double budget = 0;
  std::int64_t activation_bytes = 0;
  SymExpr recomputed_operations = 0;
};
/// The cost and savings of the memory budgets 0, 1/(points-1), ..., 1. `progress` may be null; it can stop the work
/// between two points (Fault::Cancelled).
Result<std::vector<BudgetPoint>> budget_curve(const Graph& joint, const PartitionOptions& options, int points = 11,
                                              const Progress* progress = nullptr);

}  // namespace partita
