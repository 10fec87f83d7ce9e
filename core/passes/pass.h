#pragma once
#include <span>
#include <string_view>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Where in PyTorch's flow a graph stands; ARCHITECTURE.md has the invariants of each.
///   PreGrad   what autograd has not seen: torch-level or composite ATen calls, mutation and views allowed
///   Joint     forward and backward in one; ATen, functional
///   PostGrad  a forward, backward or inference graph on its way to the compiler; functional but for a copy_ epilogue
enum class PassStage : unsigned char { PreGrad, Joint, PostGrad };
std::string_view stage_name(PassStage stage);  ///< "pre_grad"

struct PassContext {
  int threads = 1;
  /// Constants up to this size are computed ahead.
  std::size_t fold_limit_bytes = std::size_t{1} << 20;
};

/// Changes the graph and says whether it did. A failure is the user's (an unknown operator), never a missed chance.
using PassFunction = Result<bool> (*)(Graph& graph, PassContext& context);

struct Pass {
  PassFunction run = nullptr;
  std::string_view name;  ///< unique within its stage
  PassStage stage = PassStage::PostGrad;
  std::string_view description;
};

/// passes.def, in order.
std::span<const Pass> all_passes();

}  // namespace partita
