#pragma once
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// The place that a diagnostic about this node names: graph, node and the user's source line.
Where place_of(const Node& node);
Where place_of(const Node* node);  ///< empty for null
/// Adds the node's place to an error. A place that the error already has is kept.
Diagnostic at_node(Diagnostic error, const Node& node);
/// "FILE:LINE in FUNCTION"; the module path when there is no source line, empty when nothing is known.
std::string origin_text(const Node& node);

}  // namespace partita
