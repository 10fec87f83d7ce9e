#pragma once
#include <functional>
#include <vector>

#include "core/ranks/meeting.h"

namespace partita {

struct TogetherOptions : MeetingOptions {
  const Progress* progress = nullptr;  ///< stops the whole job; may be null
};

struct TogetherRun {
  std::vector<RankEnd> ends;          ///< by rank
  std::optional<Diagnostic> failure;  ///< as Meeting::failure()
};

/// Runs work(rank, the others as that rank sees them, what asks it to stop) for each rank, each on a thread of its own
/// with this thread's configuration, until all have ended or the job has failed. Error as check(job), and
/// Fault::Cancelled.
Result<TogetherRun> run_together(const Job& job, const std::function<Status(int, Communicator&, const Progress&)>& work,
                                 const TogetherOptions& options = {});

}  // namespace partita
