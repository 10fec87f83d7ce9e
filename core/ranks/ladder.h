#pragma once
// The collectives of a job's ranks, matched by their graphs, without a run.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/record/communicator.h"
#include "core/ranks/job.h"

namespace partita {

/// A collective that a graph starts.
struct GraphCollective {
  const Node* node = nullptr;        ///< the call that starts it
  const Node* wait = nullptr;        ///< the first call that waits for it; null: none does
  std::vector<const Node*> between;  ///< calls from start to wait, which run while it is under way
  Collective call;                   ///< its tensors have sizes and dtypes, and no values
};

using GraphCollectives = std::shared_ptr<const std::vector<GraphCollective>>;
/// Those of a graph, in its order; sizes by hints. Of a torch-level graph they are those of its ATen calls, whose nodes
/// live as long as the result; others are the graph's own. Errors: those of making ATen calls, of evaluating such a
/// call, and interp.random for a size without a hint.
Result<GraphCollectives> collectives_of(const Graph& graph);

/// One collective of a group, or several with equal parts of ranks with equal graphs.
struct Rung {
  std::string group;         ///< as the graphs name it
  std::int64_t number = 1;   ///< which of the group's collectives; of messages, of those of the two ranks with this tag
  std::string text;          ///< "all_reduce(sum, f32[4, 8])", as the first member has it
  std::vector<int> members;  ///< global ranks, in the group's order
  std::vector<int> starts;   ///< by member: which of its rank's collectives it is; -1: the rank never starts it
  std::string wrong;         ///< "the sizes differ", "ranks 0, 2 never start it"; empty: it matches
};

struct Ladder {
  std::vector<GraphCollectives> ranks;  ///< by rank; ranks with one graph share them
  std::vector<Rung> rungs;              ///< in an order that each rank keeps, as far as there is one
};

/// Matches the n-th collective that a rank starts in a group with the n-th of the others, as Meeting does.
/// `graphs`: by rank; they must outlive the ladder. Errors: those of collectives_of(), check(job)'s, and ranks.group
/// for a group whose members are not known.
Result<Ladder> make_ladder(const Job& job, std::span<const Graph* const> graphs);

}  // namespace partita
