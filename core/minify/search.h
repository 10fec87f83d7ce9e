#pragma once
// Asking the oracle: memory, children, events. Internal to core/minify.
#include <chrono>
#include <span>
#include <unordered_map>

#include "core/minify/reduce.h"

namespace partita::minify {

/// Where a reduction stands. Strategies ask it whether candidates fail and tell it which they take.
class Search {
 public:
  /// `patient`: a hang is believed only after the oracle's whole time limit. Else after many times what tries that pass
  /// take; confirm() asks patiently in any case.
  Search(const Oracle& oracle, const ReduceOptions& options, bool patient)
      : oracle_(oracle), options_(options), patient_(patient) {}

  /// The first try: what failure is looked for. Error minify.passes when there is none.
  Status begin(const Candidate& start);
  /// The last try, asked anew and not remembered: does the best candidate still fail?
  Result<bool> confirm();

  /// For each candidate, whether it fails as the start does. Known answers are not asked again.
  Result<std::vector<bool>> fail(std::span<const Candidate> candidates);
  Result<bool> fails(const Candidate& candidate);
  /// Takes a candidate that fails.
  void take(Candidate candidate);

  const Candidate& best() const { return best_; }
  const Failure& failure() const { return failure_; }
  int jobs() const { return options_.jobs; }
  /// Has the watcher asked to end with what there is?
  bool enough() const { return options_.steering && options_.steering->accept_now.load(std::memory_order_relaxed); }

  /// Names what follows; ends the one before.
  void strategy(std::string name);
  void report(Reduced& out);

 private:
  Status wait_while_paused() const;
  double seconds_for_a_try() const;
  void told(const Candidate& candidate, bool fails, bool remembered);
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count(); }

  const Oracle& oracle_;
  const ReduceOptions& options_;
  const bool patient_;
  double slowest_pass_ = 0;  ///< seconds
  Candidate best_;
  Failure target_, failure_;
  std::vector<StrategyRun> strategies_;
  double strategy_begun_ = 0;
  std::size_t tries_ = 0, recalled_ = 0, nodes_tried_ = 0, start_calls_ = 0;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::unordered_map<std::uint64_t, bool> known_;
};

/// Which calls of the base are needed: hints, truncated suffix, removed prefix, cones, delta debugging. Takes the best
/// of them. `start`: the units that the start had.
Status cut(Search& search, const std::shared_ptr<Base>& base, Kept start);
/// What changes a graph that is small already: fewer outputs, bypassed calls, smaller sizes, plainer values.
Status simplify(Search& search);

}  // namespace partita::minify
