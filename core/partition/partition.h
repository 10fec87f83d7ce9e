#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

enum class Partitioner : unsigned char {
  Default,  ///< the backward reads what eager's forward would have kept
  MinCut,   ///< the cheapest set of saved values, cheap operators recomputed in the backward
};

struct PartitionOptions {
  Partitioner partitioner = Partitioner::MinCut;
  /// How many of the joint graph's outputs are the forward's; unset: outputs less one gradient per primal.
  std::optional<std::size_t> forward_outputs = {};
  std::vector<std::string> save = {};       ///< node names kept for the backward, whatever that costs
  std::vector<std::string> recompute = {};  ///< node names computed again in the backward
  /// 1: recompute only what is about free. 0: keep nothing but inputs and random values. Between: at most this share of
  /// the bytes that lie between the two, at the least added arithmetic found.
  double memory_budget = 1;
};

/// A value handed from forward to backward.
struct SavedValue {
  std::string name;
  std::int64_t bytes = 0;
  bool is_input = false;   ///< a placeholder passed through: no memory beyond what the caller holds
  bool is_symbol = false;  ///< a number
  std::string why;
};

struct Partition {
  std::unique_ptr<Graph> forward;   ///< returns the forward's outputs, saved tensors, saved numbers
  std::unique_ptr<Graph> backward;  ///< reads saved numbers, saved tensors, tangents; returns one gradient per primal
  std::size_t forward_outputs = 0;  ///< the forward's own, before the saved values
  std::vector<SavedValue> saved;    ///< in the order in which forward returns them
  std::size_t saved_symbols = 0;    ///< the last so many of `saved`
  std::vector<std::string> recomputed;     ///< calls that both graphs have
  std::int64_t activation_bytes = 0;       ///< of saved tensors that are no inputs
  std::int64_t input_bytes = 0;            ///< of saved inputs
  std::int64_t recomputed_operations = 0;  ///< arithmetic added by recomputing, about
};

/// Is this a joint graph: inputs are all primals, then the tangents; outputs the forward's, then a gradient per primal?
bool is_joint(const Graph& graph);

/// Splits a joint graph. Symbolic sizes count by their hints, 4096 where a symbol has none. Errors: partition.pin for a
/// name that cannot be pinned so, partition.joint for a graph that is no joint graph.
Result<Partition> partition(const Graph& joint, const PartitionOptions& options = {});

struct BudgetPoint {
  double budget = 0;
  std::int64_t activation_bytes = 0;
  std::int64_t recomputed_operations = 0;
};
/// What each memory budget costs and saves, for budgets 0, 1/(points-1), ..., 1. `progress` may be null; stopped by it
/// between two points: Fault::Cancelled.
Result<std::vector<BudgetPoint>> budget_curve(const Graph& joint, const PartitionOptions& options, int points = 11,
                                              const Progress* progress = nullptr);

}  // namespace partita
