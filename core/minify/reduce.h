#pragma once
// From a graph that fails to a small graph that fails in the same way.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/minify/oracle.h"

namespace partita::minify {

/// What is going on, for who watches. Sent after every try, from the reducing thread.
struct Event {
  std::string strategy;  ///< "truncate suffix", "shrink sizes", ...
  std::string tried;     ///< what this try was: "keep 120 of 1,700 calls"
  bool fails = false;    ///< the try failed in the way that is looked for
  bool remembered = false;
  std::size_t tries = 0, recalled = 0;     ///< so far: asked of the oracle, and known from an earlier run
  std::size_t calls = 0, start_calls = 0;  ///< of the best graph, and of the first
  double seconds = 0, tries_per_second = 0;
  std::shared_ptr<const Graph> graph;  ///< the smallest that fails so far
};

/// What a watcher may ask for at any time, from any thread.
struct Steering {
  std::atomic<bool> pause = false;       ///< no new try until it is false again
  std::atomic<bool> accept_now = false;  ///< end with what there is
};

/// Answers of earlier runs by candidate; null functions: none are kept.
struct Memory {
  std::function<std::optional<std::string>(std::uint64_t candidate)> recall;
  std::function<void(std::uint64_t candidate, const std::string& answer)> remember;
};

struct ReduceOptions {
  int jobs = 1;          ///< tries at once, when the oracle judges in children
  int threads = 1;       ///< of the interpreter that finds values
  bool simplify = true;  ///< not only cut, but also shrink sizes, simplify values, ...
  Memory memory = {};
  const Progress* progress = nullptr;  ///< cancelling ends with Fault::Cancelled
  const Steering* steering = nullptr;
  std::function<void(const Event&)> event = {};
};

/// One strategy's share of the work.
struct StrategyRun {
  std::string name;
  std::size_t tries = 0, successes = 0;
  std::size_t calls_before = 0, calls_after = 0;
  double seconds = 0;
};

struct Reduced {
  std::shared_ptr<const Graph> graph;
  std::vector<Value> inputs;
  Failure failure;  ///< of the result
  std::vector<StrategyRun> strategies;
  std::size_t tries = 0, recalled = 0;
  std::size_t start_calls = 0, calls = 0;  ///< call nodes, getitems not counted
  std::size_t nodes_tried = 0;             ///< summed over all tries
  double seconds = 0;
  std::vector<std::string> made_up;  ///< inputs that stand for nodes which could not be computed: zeros
};

/// Keeps to failures that are the same as the first one's. The order of tries depends on the graph, the answers and
/// `jobs` alone, so that a run with a memory of an earlier one ends with the same graph. Error minify.passes when the
/// graph does not fail.
Result<Reduced> reduce(std::shared_ptr<const Graph> graph, std::vector<Value> inputs, const Oracle& oracle,
                       const ReduceOptions& options = {});

}  // namespace partita::minify
