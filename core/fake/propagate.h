#pragma once
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Fake propagation: computes every node's meta from the placeholders', which must be known, in sub graphs of cond and
/// while_loop too. Guards go to graph.shapes. A node whose operator has no record keeps its meta. Returns the number of
/// metas computed. Errors: ops.unknown when such a node has no meta, and the operators' complaints about their
/// arguments.
Result<std::size_t> propagate(Graph& graph);

/// propagate() for a graph of a file, whose annotations may contradict its calls: error fake.annotation names the first
/// of another dtype or other sizes; other strides are replaced. What is not supported is left as it is annotated.
Status settle_annotations(Graph& graph);

/// A node whose annotation differs from the inferred meta.
struct MetaDifference {
  std::string node;
  std::string op;
  std::string annotated;  ///< "f32[8, 64][64, 1]cpu"
  std::string inferred;   ///< the same, or the operator's complaint
};
struct MetaCheck {
  std::size_t checked = 0;         ///< annotated nodes that were compared
  std::size_t without_record = 0;  ///< annotated nodes that cannot be inferred
  std::vector<MetaDifference> differences;
};
/// Compares every annotation with the meta inferred from the annotations of the node's inputs. Unbacked symbols may
/// have other names.
MetaCheck check_metas(const Graph& graph);

}  // namespace partita
