#pragma once
#include <string>
#include <vector>

#include "core/partition/roles.h"

namespace partita {

/// Which recomputations are refused, besides expensive, random and side-effecting operators. Names and meaning are
/// torch._functorch.config's ban_recompute_*.
struct CutOptions {
  bool ban_used_far_apart = true;
  bool ban_long_fusible_chains = true;
  bool ban_materialized_backward = true;
  bool ban_not_recomputable = true;  ///< operators that are neither cheap nor expensive: unknown ones
  bool ban_expensive = true;
  bool ban_reductions = true;
};

/// The user's will, by Node::id.
struct Pins {
  std::vector<char> save;
  std::vector<char> recompute;
};

struct Cut {
  std::vector<Node*> saved;      ///< in graph order
  std::vector<const char*> why;  ///< for each saved value
  std::vector<Node*> banned;     ///< what may not be recomputed, in graph order
};

/// The set of values of least bytes, of least recomputed arithmetic among those, that cuts the backward off from what
/// it may not compute itself. Inputs count next to nothing, since the caller holds them anyway; views of them and views
/// that are as large as what they view are never saved. `allowed` (by id; may be empty) lifts the bans on a node. Error
/// partition.pin when the pins contradict each other.
Result<Cut> min_cut(const Graph& joint, const Roles& roles, const CutOptions& options, const Pins& pins,
                    const std::vector<char>& allowed);

}  // namespace partita
