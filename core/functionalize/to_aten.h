#pragma once
#include <memory>
#include <unordered_set>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// A graph of ATen calls, in-place ones and views still in, composites decomposed.
struct AtenGraph {
  std::unique_ptr<Graph> graph;
  std::unordered_set<const Node*> no_grad;  ///< calls made under torch.no_grad
};

/// Resolves torch-level calls, methods and Python operators, decomposes CompositeImplicitAutograd operators as PyTorch
/// does above autograd, and takes set_grad_enabled regions out. Metas of all calls are known afterwards, where a record
/// tells. Errors: ops.unknown, and autocast, which is not supported.
Result<AtenGraph> to_aten(const Graph& graph);

}  // namespace partita
