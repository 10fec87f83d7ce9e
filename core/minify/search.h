#pragma once
// Asks the oracle, with memory, children and events. Internal to core/minify.
#include <chrono>
#include <span>
#include <unordered_map>

#include "core/minify/reduce_graph.h"

namespace partita::minify {

/// The state of a reduction. Strategies ask it whether candidates fail, and tell it which ones they take.
class Search {
 public:
  /// `patient`: a try counts as a hang only after the oracle's whole time limit; otherwise after many times the
  /// duration of tries that pass. confirm() waits ten times longer than a try.
  Search(const Oracle& oracle, const ReduceOptions& options, bool patient)
      : oracle_(oracle), options_(options), patient_(patient) {}

  /// The first try, which finds the failure to look for. Error minify.passes when there is none.
  Status begin(const Candidate& start);
  /// The last try, asked without memory: does the best candidate still fail?
  Result<bool> confirm();

  /// For each candidate, whether it fails as the start does. Known answers are reused.
  Result<std::vector<bool>> fail(std::span<const Candidate> candidates);
  Result<bool> fails(const Candidate& candidate);
  /// Takes a candidate that fails.
  void take(Candidate candidate);

  const Candidate& best() const { return best_; }
  const Failure& failure() const { return failure_; }
  /// The nodes that the oracle suspects in the best candidate, else the one that its failure names.
  std::vector<std::string> suspects() const;
  int jobs() const { return options_.jobs; }
  /// Has the watcher asked to end with the best graph so far?
  bool enough() const { return options_.steering && options_.steering->accept_now.load(std::memory_order_relaxed); }

  /// Begins the next strategy and ends the one before.
  void strategy(std::string name);
  void report(MinifyResult& out);

 private:
  Status wait_while_paused() const;
  Status learn_what_passing_takes(const Candidate& start);
  double seconds_for_a_try() const;
  void report_try(const Candidate& candidate, bool fails, bool remembered);
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

/// Removes calls of the base that are not needed: by hints, truncating the suffix, removing the prefix, cones, delta
/// debugging. Takes the best result. `start`: the removables of the start.
Status cut(Search& search, const std::shared_ptr<Base>& base, Kept start);
/// Simplifies a graph that is already small: fewer outputs, bypassed calls, smaller sizes, plainer values.
Status simplify(Search& search);

}  // namespace partita::minify
