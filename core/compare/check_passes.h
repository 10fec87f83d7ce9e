#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/compare/compare.h"
#include "core/load/session.h"
#include "core/passes/run_passes.h"

namespace partita {

/// The first pass that changed the values.
struct PassFailure {
  std::string pass;
  std::string node;          ///< the first wrong node in the graph after the pass
  std::string origin;        ///< of that node
  bool node_is_new = false;  ///< the pass made the node; `seen_at` is then the first node, in both graphs, that differs
  std::string seen_at;
  /// The first rewrite after which the values differ, counted from 0; unset for passes that change all at once.
  std::optional<std::size_t> rewrite;
  RewriteStep step;        ///< that rewrite
  std::size_t output = 0;  ///< number of the output that revealed it
  Difference difference;   ///< of that output
};

struct CheckedRun {
  PipelineRun run;  ///< all passes up to the one that failed, which is included
  std::optional<PassFailure> failure;
  /// By pass that changed the graph: the result that it moved most, against those before the pass. A graph without
  /// tensors has none.
  std::map<std::string, Difference> numbers;
};

/// Does the call draw random numbers? Dropout with probability 0, or outside of training, does not.
bool draws_random(const Node& node);

/// The tolerance for comparing a graph with itself after a pass. It allows reassociation but not a lost cast.
Tolerance pass_tolerance(DType t);

/// Runs run_passes() and interprets the graph with the same inputs before and after each pass that changed it. Stops at
/// the first pass whose outputs differ, and finds its guilty rewrite by halving. Random operators make this
/// meaningless: error check.random names one.
Result<CheckedRun> run_passes_checked(Graph& graph, std::span<const Pass> passes, PassContext& context,
                                      const std::vector<Value>& inputs, const PipelineOptions& options = {});

}  // namespace partita
