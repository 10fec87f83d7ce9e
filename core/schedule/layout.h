#pragma once
#include <optional>

#include "core/schedule/lower_graph.h"

namespace partita::schedule {

/// Where the elements of a definition lie within its memory, once it has some.
struct Layout {
  Sizes strides;
  std::int64_t elements = 0;  ///< of storage that they reach
};
/// Memory: as its meta says. Else the strides promised for it when no two elements share memory by them, row-major
/// otherwise.
Layout layout_of(const LoweredGraph& g, int definition);

/// A definition seen as strides over the memory of another.
struct StridedView {
  int base = -1;
  Sizes strides;
  std::int64_t offset = 0;
};
/// The strides over `sizes` that give `element` at an index of `variables` (0 where a size is 1); nullopt when it is no
/// such sum. The base is left open.
std::optional<StridedView> strided(const loops::IndexMath& math, SymExpr element, const loops::Index& variables,
                                   const Sizes& sizes);
/// Follows views (and copies, where the reader does not mind sharing) from `definition` to what holds its elements;
/// itself when it is no view, or when no strides can say it.
StridedView resolve_view(const LoweredGraph& g, int definition, bool through_copies);

/// An output as a view: of what it aliases in the graph when that has the promised strides, else of itself.
StridedView output_view(const LoweredGraph& g, int definition);
/// An argument of a call as a view; a copy is left out when the call can read through it.
StridedView argument_view(const LoweredGraph& g, const ExternNode& call, int definition);

}  // namespace partita::schedule
