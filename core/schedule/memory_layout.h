#pragma once
#include <optional>

#include "core/schedule/lower_graph.h"

namespace partita::schedule {

/// The layout of a definition's elements in its memory, if it gets memory.
struct MemoryLayout {
  SymList strides;
  SymExpr elements = 0;  ///< number of storage elements that the strides reach
};
/// Does each element have memory of its own? Gaps are allowed. False also for strides that this cannot tell of.
bool is_without_overlap(const loops::Lowering& lowering, const SymList& sizes, const SymList& strides);
/// The layout of a definition. Memory: what its meta says. Others: the promised strides if elements do not overlap,
/// else row-major.
MemoryLayout layout_of(const LoweredGraph& g, int definition);

/// A definition as a strided view of another definition's memory.
struct StridedView {
  int base = -1;
  SymList strides;
  SymExpr offset = 0;
};
/// The strides over `sizes` for which an index of `variables` (0 where the size is 1) gives `element`; nullopt if there
/// are none. Leaves `base` open.
std::optional<StridedView> strided(const loops::IndexMath& math, SymExpr element, const loops::Index& variables,
                                   const SymList& sizes);
/// What a reader of a definition's elements can look through: views; copies, if it may share memory; one cast, if it
/// takes the other dtype. Each includes those before it.
enum class Through : std::uint8_t { Views, Copies, Cast };
/// Follows these from `definition` to the definition that holds its elements. Returns the definition itself if there
/// are none or no strides describe it.
StridedView resolve_view(const LoweredGraph& g, int definition, Through through);

/// An output as a view of what it aliases in the graph, if that has the promised strides; else of itself.
StridedView output_view(const LoweredGraph& g, int definition);
/// Does a dimension of the matrix (or batch) have stride 1, and do its rows or columns not overlap?
bool is_matrix(const SymList& sizes, const SymList& strides);
/// An argument of a call as a view. Skips a copy or cast if the call can read the original.
StridedView argument_view(const LoweredGraph& g, const ExternNode& call, int definition);

}  // namespace partita::schedule
