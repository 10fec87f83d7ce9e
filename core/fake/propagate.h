#pragma once
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Fake propagation: computes every node's meta from the placeholders' (which must be known), sub graphs of cond and
/// while_loop too, taking guards in graph.shapes. A node whose operator has no record keeps the meta it has. Returns
/// how many were computed. Errors: ops.unknown when such a node has no meta, and what the operators say of their
/// arguments.
Result<std::size_t> propagate(Graph& graph);

/// One node whose annotation is not what fake propagation finds.
struct MetaDifference {
  std::string node;
  std::string op;
  std::string annotated;  ///< "f32[8, 64][64, 1]cpu"
  std::string inferred;   ///< likewise, or the operator's complaint
};
struct MetaCheck {
  std::size_t checked = 0;         ///< annotated nodes that were compared
  std::size_t without_record = 0;  ///< annotated nodes nobody can infer
  std::vector<MetaDifference> differences;
};
/// Holds every annotation against what follows from the annotations of the node's inputs. Unbacked symbols may be
/// called otherwise.
MetaCheck check_metas(const Graph& graph);

}  // namespace partita
