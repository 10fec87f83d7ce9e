#include "core/ranks/run_together.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "core/base/config.h"
#include "core/base/raise.h"

namespace partita {
namespace {

/// What a rank's work came to, however it ended: an exception that left its thread would end the process.
Status outcome(auto work) {
  try {
    return catch_raised<void>(work);
  } catch (const std::exception& error) {
    return Diagnostic(Fault::Internal, "exception", std::string("internal error: ") + error.what());
  }
}

}  // namespace

Result<TogetherRun> run_together(const Job& job, const std::function<Status(int, Communicator&, const Progress&)>& work,
                                 const TogetherOptions& options) {
  TRY_DO(check(job));
  Meeting meeting(job, options);
  {
    const Config config = partita::config();
    std::atomic<int> left = job.ranks;
    const auto run = [&](int rank) {
      const ConfigScope scope(config);
      meeting.begin(rank);
      Status status = outcome([&] { return work(rank, meeting.rank(rank), meeting.progress()); });
      if (status) status = meeting.finish(rank);
      meeting.end(rank, status);
      left.fetch_sub(1);
    };
    std::vector<std::jthread> threads;  // joined before what they use goes
    threads.reserve(static_cast<std::size_t>(job.ranks));
    try {
      for (int rank = 0; rank < job.ranks; ++rank) threads.emplace_back(run, rank);
    } catch (const std::system_error& error) {
      meeting.stop(
          input_error("ranks.threads", fmt::format("no thread for rank {} of {} can be started ({}); raise the "
                                                   "limit (ulimit -u)",
                                                   threads.size(), job.ranks, error.what())));
      left.fetch_sub(job.ranks - static_cast<int>(threads.size()));
    }
    // A cancelled job is stopped from here, since its ranks may all wait.
    using namespace std::chrono_literals;
    while (options.progress && left.load() > 0) {
      if (options.progress->cancelled()) meeting.stop(stopped_on_request());
      std::this_thread::sleep_for(2ms);
    }
  }
  TRY_DO(check_cancelled(options.progress));
  return TogetherRun{meeting.ends(), meeting.failure()};
}

}  // namespace partita
