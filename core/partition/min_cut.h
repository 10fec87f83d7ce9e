#pragma once
#include <vector>

#include "core/partition/joint_parts.h"

namespace partita {

/// Which operators may not be recomputed, besides expensive, random and side-effecting ones. Names and meaning are
/// those of torch._functorch.config's ban_recompute_*.
struct CutOptions {
  bool ban_used_far_apart = true;
  bool ban_long_fusible_chains = true;
  bool ban_materialized_backward = true;
  bool ban_not_recomputable = true;  ///< operators known neither as cheap nor as expensive
  bool ban_reductions = true;
};

/// The user's pins, by Node::id.
struct Pins {
  std::vector<char> save;
  std::vector<char> recompute;
};

struct MinCut {
  std::vector<Node*> saved;      ///< in graph order
  std::vector<const char*> why;  ///< the reason, for each saved value
  std::vector<Node*> banned;     ///< nodes that may not be recomputed, in graph order
};

/// Finds the cheapest set of values to save: the fewest bytes, and among those the least recomputed arithmetic. The
/// backward can be computed from it without the nodes that may not be recomputed. Inputs cost almost nothing, because
/// the caller holds them anyway. Views of inputs, and views as large as what they view, are never saved. `allowed` (by
/// id; may be empty) lifts the bans on a node. Error partition.pin when the pins contradict each other.
Result<MinCut> min_cut(const Graph& joint, const JointParts& parts, const CutOptions& options, const Pins& pins,
                       const std::vector<char>& allowed);

}  // namespace partita
