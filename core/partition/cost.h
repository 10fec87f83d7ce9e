#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "core/ir/graph.h"

namespace partita {

/// The value of an expression by the hints of its symbols; a symbol without one counts as 4096.
std::int64_t estimate(const Graph& graph, SymExpr e);
/// The symbols without hints in the graph's sizes, by name, with the value that estimate() takes for each.
std::map<std::string, std::int64_t> assumed_sizes(const Graph& graph);
/// The bytes of a node's tensors, summed for a tuple; 8 for a number. An estimate() where sizes are symbolic. What
/// exceeds 43 bits counts as 2^43.
std::int64_t bytes_of(const Node& node);
std::int64_t elements_of(const Node& node);
/// Estimates the arithmetic operations of a call: 2 m n k for matrix products, one per element for pointwise work, one
/// per input element for reductions, none for views and numbers.
std::int64_t operations_of(const Node& node);
/// The same as an expression of the symbols; a number where they have hints.
SymExpr symbolic_operations_of(const Node& node);

/// Properties of a call that the partitioner needs.
struct CostClass {
  bool view = false;          ///< shares its input's memory
  bool fusible = false;       ///< a compiler fuses it with a fusible neighbour
  bool recomputable = false;  ///< cheap to recompute
  bool expensive = false;     ///< matmul, convolution, attention, sort: never recomputed
  bool random = false;        ///< recomputing it would give other values
  bool side_effect = false;  ///< has_effect() (core/ops/facts/effects.h): runs exactly once, also when nothing reads it
  bool concatenates = false;
};
/// Is the value tagged to be recomputed? What draws or has an effect is not run twice.
bool tagged_recompute(const Node& node);
CostClass cost_class(const Node& node);

}  // namespace partita
