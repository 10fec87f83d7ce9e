#pragma once
// Reduces a graph that fails to a small graph that fails in the same way.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/minify/oracle.h"

namespace partita::minify {

/// The state of a reduction, for watchers. Sent after every try by the reducing thread.
struct Event {
  std::string strategy;  ///< "truncate suffix", "shrink sizes", ...
  std::string tried;     ///< what was tried: "keep 120 of 1,700 calls"
  bool fails = false;    ///< the try failed in the same way as the start
  bool remembered = false;
  std::size_t tries = 0, recalled = 0;     ///< so far: questions to the oracle, and answers known from an earlier run
  std::size_t calls = 0, start_calls = 0;  ///< calls of the best graph, and of the first
  double seconds = 0, tries_per_second = 0;
  std::shared_ptr<const Graph> graph;  ///< the smallest failing graph so far
};

/// Requests that a watcher may make at any time from any thread.
struct Steering {
  std::atomic<bool> pause = false;       ///< no new try starts while it is true
  std::atomic<bool> accept_now = false;  ///< end with the best graph so far
};

/// Answers of earlier runs, by candidate. Null functions: none are kept.
struct Memory {
  std::function<std::optional<std::string>(std::uint64_t candidate)> recall;
  std::function<void(std::uint64_t candidate, const std::string& answer)> remember;
};

struct ReduceOptions {
  int jobs = 1;          ///< tries at once, if the oracle judges in children
  int threads = 1;       ///< threads of the interpreter that computes values
  bool simplify = true;  ///< after cutting, also shrink sizes, simplify values, ...
  Memory memory = {};
  const Progress* progress = nullptr;  ///< cancelling ends with Fault::Cancelled
  const Steering* steering = nullptr;
  std::function<void(const Event&)> event = {};
  /// Hears of each candidate that becomes the smallest failing one, and of the first.
  std::function<void(const Candidate&, const Failure&)> taken = {};
};

/// What one strategy did.
struct StrategyRun {
  std::string name;
  std::size_t tries = 0, successes = 0;
  std::size_t calls_before = 0, calls_after = 0;
  double seconds = 0;
};

struct MinifyResult {
  std::shared_ptr<const Graph> graph;
  std::vector<Value> inputs;
  Failure failure;  ///< failure of the result
  std::vector<StrategyRun> strategies;
  std::size_t tries = 0, recalled = 0;
  std::size_t start_calls = 0, calls = 0;  ///< call nodes, without getitems
  std::size_t nodes_tried = 0;             ///< summed over all tries
  double seconds = 0;
  double hang_seconds = 0;           ///< after this time a try counted as a hang at the end
  std::vector<std::string> made_up;  ///< inputs that replace nodes whose values could not be computed; they are zeros
};

/// Reduces a failing graph, taking only candidates that fail in the same way as the graph. The order of tries depends
/// only on the graph, the answers and `jobs`, so that a run with the memory of an earlier one ends with the same graph.
/// Error minify.passes when the graph does not fail.
Result<MinifyResult> reduce(std::shared_ptr<const Graph> graph, std::vector<Value> inputs, const Oracle& oracle,
                            const ReduceOptions& options = {});

}  // namespace partita::minify
