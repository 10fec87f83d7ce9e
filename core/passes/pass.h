#pragma once
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/config.h"
#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/ir/stage.h"

namespace partita {

/// One change that a pass makes in one place.
struct RewriteStep {
  std::string rule;   ///< a row of rewrites.def, or what the pass does to the node: "dead", "equal"
  std::string graph;  ///< that the node is in; sub graphs have passes, too
  std::string node;   ///< what is rewritten
};

struct PassContext {
  int threads = config().threads;
  std::size_t fold_limit_bytes = config().fold_limit;  ///< larger values are not folded
  /// Parameters are constants: what is made of them is folded if it is no larger, whatever the limit.
  bool frozen = config().freezing;
  bool pack_linears = false;               ///< PreGradPasses: the graph is for a device that small products leave idle
  std::set<std::string> fixed = {};        ///< Constants: the placeholders that have the same values in each run
  std::vector<RewriteStep> rewrites = {};  ///< those made
  std::size_t rewrite_limit = SIZE_MAX;    ///< passes make no more than these

  /// Passes ask when nothing but the answer keeps them from a rewrite, and make it if they may. With a smaller limit a
  /// pass makes the first of the same rewrites.
  bool may_rewrite(std::string_view rule, const Node& node);
};

/// Changes the graph and returns whether it did. An error is the user's (an unknown operator); a missed optimisation is
/// not an error.
using PassFunction = Result<bool> (*)(Graph& graph, PassContext& context);

struct Pass {
  PassFunction run = nullptr;
  std::string_view name;  ///< unique within its stage
  Stage stage = Stage::PostGradPasses;
  std::string_view description;
  bool needed = false;  ///< later stages refuse what is left without it
};

/// passes.def, in order.
std::span<const Pass> all_passes();

}  // namespace partita
