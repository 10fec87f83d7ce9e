#pragma once
#include <span>
#include <string_view>

#include "core/base/config.h"
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Where in PyTorch's flow a graph is; ARCHITECTURE.md has the invariants of each stage.
///   PreGrad   before autograd: torch-level or composite ATen calls, mutation and views allowed
///   Joint     forward and backward in one graph; ATen, functional
///   Freezing  an inference graph, functional, whose parameters have become its attributes
///   PostGrad  a forward, backward or inference graph before the compiler; functional except for a copy_ epilogue
enum class PassStage : unsigned char { PreGrad, Joint, Freezing, PostGrad };
std::string_view stage_name(PassStage stage);  ///< "pre_grad"

struct PassContext {
  int threads = config().threads;
  std::size_t fold_limit_bytes = config().fold_limit;  ///< larger values are not folded
  /// Parameters are constants: what is made of them is folded if it is no larger, whatever the limit.
  bool frozen = config().freezing;
};

/// Changes the graph and returns whether it did. An error is the user's (an unknown operator); a missed optimisation is
/// not an error.
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
