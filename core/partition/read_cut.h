#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/partition/partition.h"

namespace partita {

/// The cut that a forward and a backward graph have, as PyTorch left them: what the one returns for the other. Both are
/// copied. `why` of a saved value says what the graphs tell: its tag, the input that it is or shows. Error
/// partition.pair where the backward does not take what the forward returns.
Result<Partition> read_cut(const Graph& forward, const Graph& backward);

/// The outputs of a forward graph that are saved by their descriptors in a trace log, in order. Unset: it has none.
std::optional<std::vector<Node*>> described_saved(const Graph& forward);

/// A cut without its backward, from a forward with the values that it saves.
Partition cut_of_forward(const Graph& forward, const std::vector<Node*>& saved);

/// One value in two cuts of the same program.
struct CutDifference {
  std::string name;
  std::optional<SavedValue> theirs, ours;  ///< unset: not saved there
  std::string why;                         ///< what the other does in its place; for what both save, why ours does
};
/// The values that either cut saves: those of both first, then in the order of the forwards.
std::vector<CutDifference> compare_cuts(const Partition& theirs, const Partition& ours);

}  // namespace partita
