#pragma once
#include <memory>
#include <vector>

#include "core/base/result.h"
#include "core/functionalize/functionalize.h"

namespace partita {

struct JointOptions {
  /// Take a tangent for outputs that alias inputs or intermediates too. PyTorch differentiates through those aliases
  /// outside of the graph, by the views it makes again at run time; who runs the graph alone needs them inside.
  bool tangents_for_aliases = false;
};

/// Forward and backward in one graph: primals_* then tangents_* in; the functional graph's outputs, then one gradient
/// or None per primal out.
struct Joint {
  std::unique_ptr<Graph> graph;
  std::size_t forward_outputs = 0;
  std::vector<std::size_t> tangent_of;  ///< for each tangent, the forward output it belongs to
};

/// Differentiates as AOTAutograd traces the autograd engine: functions with the latest forward call first, gradients
/// that meet are added in the order they arrive, results that a backward reads are detached when they are saved and
/// when they are read. Primals that require grad are those of the functional graph's metadata. Errors: ops.unknown
/// names an operator without derivative.
Result<Joint> make_joint(FunctionalGraph forward, const JointOptions& options = {});

/// Replaces calls that core ATen does not have, see decomposes_to_core.
Status decompose_to_core(Graph& graph);
/// The operators of torch._functorch.compilers.default_decompositions, as far as there is a simpler form of them here.
Status decompose_as_functorch(Graph& graph);

/// A copy with nodes named as FX would name them had it traced them in this order.
std::unique_ptr<Graph> renamed_in_order(const Graph& graph);

}  // namespace partita
