#pragma once
#include <memory>
#include <vector>

#include "core/base/result.h"
#include "core/functionalize/functionalize.h"

namespace partita {

struct JointOptions {
  /// Gives outputs that alias inputs or intermediates a tangent too. PyTorch differentiates through those aliases
  /// outside of the graph, by views that it makes again at run time. A caller that runs the graph alone needs them
  /// inside.
  bool tangents_for_aliases = false;
};

/// Forward and backward in one graph. Inputs: primals_*, then tangents_*. Outputs: those of the functional graph, then
/// one gradient or None per primal.
struct Joint {
  std::unique_ptr<Graph> graph;
  std::size_t forward_outputs = 0;
  std::vector<std::size_t> tangent_of;  ///< for each tangent, the index of its forward output
};

/// Differentiates as AOTAutograd traces the autograd engine. Functions with the latest forward call come first.
/// Gradients of one value are added in the order in which they arrive. A result that a backward formula reads is
/// detached when it is saved and again when it is read. The functional graph's metadata tells which primals require
/// grad. Error ops.unknown names an operator without derivative.
Result<Joint> make_joint(FunctionalGraph forward, const JointOptions& options = {});

/// Decomposes calls that are not in core ATen; see decomposes_to_core.
Status decompose_to_core(Graph& graph);
/// Decomposes the operators of torch._functorch.compilers.default_decompositions, if their record has a decomposition.
Status decompose_as_functorch(Graph& graph);

/// Returns a copy with the names that FX would give if it had traced the nodes in this order.
std::unique_ptr<Graph> renamed_in_order(const Graph& graph);

}  // namespace partita
