#pragma once
#include <cstdint>

#include "core/ir/graph.h"

namespace partita {

/// Bytes of a node's tensors (a tuple's together); 8 for a number. Symbols count by hint, 4096 without.
std::int64_t bytes_of(const Node& node);
std::int64_t elements_of(const Node& node);
/// Arithmetic operations of a call, about: 2 m n k for products of matrices, one per element for pointwise work, one
/// per input element for reductions, none for views and numbers.
std::int64_t operations_of(const Node& node);

/// What the partitioner may do with a call.
struct CostClass {
  bool view = false;          ///< shares its input's memory
  bool fusible = false;       ///< a compiler makes no kernel of its own for it when its neighbour is fusible too
  bool recomputable = false;  ///< about free to compute again
  bool expensive = false;     ///< matmul, convolution, attention, sort: never computed again
  bool random = false;        ///< computing it again would give other values
  bool side_effect = false;   ///< must run exactly once
  bool concatenates = false;
};
CostClass cost_class(const Node& node);

}  // namespace partita
