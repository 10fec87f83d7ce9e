#pragma once
// Where the ranks of a job meet that run in one process, each on its own thread.
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/base/scratch.h"
#include "core/ops/record/communicator.h"
#include "core/ranks/exchange.h"
#include "core/ranks/job.h"

namespace partita {

struct MeetingOptions {
  int computing = 1;  ///< as many ranks compute at a time; who waits for others does not count
  /// "FILE:LINE in FUNCTION" of a rank's node, for messages; empty, or an empty text: nothing is known.
  std::function<std::string(int rank, const std::string& node)> origin;
};

/// How a rank's part of the job ended.
struct RankEnd {
  enum class State {
    Done,
    Failed,   ///< by itself: an error that has nothing to do with the others
    Waits,    ///< for a collective that cannot come to its end, or started one that does not match
    Stopped,  ///< because another rank failed, or the job was to be stopped
  };
  State state = State::Done;
  std::string text;  ///< "waits at all_reduce_2 (model.py:12) for its 3rd collective of group '0': all_reduce(...)"
  std::string node;  ///< where it failed or waits; may be empty
};
std::string_view name_of(RankEnd::State state);  ///< "done"

/// Carries out collectives once all members of the group have started them, in the order in which each starts its own
/// in that group. The job ends at once when one cannot come to its end: its parts do not match, or no rank can go on.
/// What a rank is given is written to its outputs by its own thread when it waits, so memory of a collective that
/// nobody waits for may be used again.
class Meeting {
 public:
  Meeting(Job job, MeetingOptions options);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// A rank's view of the others. Its functions are called by the rank's thread, between begin() and end().
  Communicator& rank(int rank);
  /// The rank's thread may compute now.
  void begin(int) { computing_.acquire(); }
  /// Waits for what the rank started and did not wait for; what is in memory that somebody else has, too, is filled.
  Status finish(int rank);
  void end(int rank, const Status& status);
  /// Ends the job: who waits is released, and `progress()` says stop.
  void stop(Diagnostic why);

  /// Stops the computing of ranks once the job has failed.
  const Progress& progress() const { return progress_; }
  /// Why the job failed: ranks.mismatch, ranks.deadlock, ranks.group, or the first rank's error; notes tell what each
  /// rank was at. Unset: it did not.
  std::optional<Diagnostic> failure() const;
  std::vector<RankEnd> ends() const;

 private:
  struct Slot;
  struct Pending;
  struct Rank;
  class View;
  using Lock = std::unique_lock<std::mutex>;

  Result<RankPlace> next_place(int rank, int graph);
  void start(int rank, Collective collective);
  void wait(int rank, const Tensor& output);
  std::vector<int> members_of(int rank, const Collective& collective, const Lock& lock);
  std::shared_ptr<Slot> join(int rank, Collective collective, std::vector<int> members);
  void complete(Slot& slot, Lock& lock);
  void wait_for(int rank, const std::shared_ptr<Slot>& slot, Lock& lock);
  void fail_job(Diagnostic why, const Lock& lock);
  void fail_mismatched(const std::shared_ptr<Slot>& slot, const std::string& why, const Lock& lock);
  void fail_if_stuck(const Lock& lock);

  // meeting_messages.cpp, with the mutex held
  std::string place(int rank, const std::string& node) const;
  Where where(int rank, const Collective& collective) const;
  Diagnostic mismatched(const Slot& slot, const std::string& why) const;
  Diagnostic stuck() const;
  std::string started_text(int rank, const Slot& slot) const;
  std::string line_of(int rank, const Slot* about) const;
  std::vector<std::string> lines(const Slot* about) const;

  const Job job_;
  const MeetingOptions options_;
  Progress progress_;
  std::counting_semaphore<> computing_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::map<std::pair<std::string, std::int64_t>, std::shared_ptr<Slot>> open_;  ///< without results; by channel, number
  int active_;  ///< ranks that can go on: neither ended nor waiting
  std::optional<Diagnostic> failure_;
  std::optional<ScratchFolder> folder_;  ///< where processes meet that run ranks' graphs; made when it is needed
  std::shared_ptr<const Slot> broken_;   ///< whose parts do not match; null: none is the reason of the failure
};

}  // namespace partita
