#pragma once
// The graphs of a job's ranks, each without the others.
#include <vector>

#include "app/tasks/rank_folder.h"
#include "core/minify/start.h"

namespace partita {

/// Each rank's graph and inputs without its collectives, by rank. What the others send is an input, with the value that
/// it has when all ranks run together on the interpreter; what the rank sends is a result. So a rank fails by itself as
/// it fails in the job, unless it is the collective that fails. Options as make_start() takes them. Errors of that run,
/// of make_start(), and minify.ranks for a graph whose collectives cannot be cut off: one writes to what it sends or
/// lies in a sub graph, or a call reads what was not waited for. Torch-level graphs become those of their ATen calls.
Result<std::vector<minify::Start>> ranks_alone(const RankFolder& folder, std::uint64_t seed, bool functional,
                                               const Progress* progress);

}  // namespace partita
