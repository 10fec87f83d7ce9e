#pragma once
#include "app/tasks/joined_profile.h"
#include "app/tasks/queries.h"
#include "core/diff/diff.h"

namespace partita {

/// Where the time of the program's own run went, by the profile of the request: its calls, the longest first.
Result<QueryAnswer> run_times_of(const QuerySubject& subject);
/// Rows of the run times of graphs, and of those of their calls that differ by more than steps do; a log for each run
/// of the differences, in their order. The rows point into the logs' artefacts.
void add_run_times(Diff& diff, const std::vector<ProfiledLog>& logs);

}  // namespace partita
