#pragma once
#include <map>
#include <vector>

#include "core/aot/graph_io.h"

namespace partita {

/// What AOTDedupeWrapper and AOTSyntheticBaseWrapper do for inputs that share memory. The graph is made for inputs that
/// do not: one that is the very same tensor as an earlier one is dropped, and those that overlap, if the graph writes
/// to one of them, become views (as_strided) of one new input, the whole memory, in the place of the first of them.
struct SharedInputs {
  GraphInputs caller;           ///< as the caller has them
  std::vector<std::size_t> at;  ///< by the caller's input: the graph's input that it is or lies in
  std::vector<bool> is_base;    ///< by the graph's input: it is a whole memory
  /// The caller's inputs whose sizes or strides the graph changes though they lie in a base. The graph returns them
  /// after the user's outputs.
  std::vector<std::size_t> returned;

  /// The caller's inputs that are the graph's input i or lie in it.
  std::vector<std::size_t> inputs_in(std::size_t i) const;
  /// Gives the caller's inputs the sizes and strides that they have after a run. `inputs`: the graph's; `last`: the
  /// values of `returned`.
  void update(const GraphInputs& inputs, const std::vector<Value>& last);
};

/// Rewrites the graph and its inputs, and sets the placeholders' storage_id. Without `bases` (for interpreters, whose
/// inputs share memory as the caller's) only drops repeated tensors. Error aot.shared: a memory that cannot be one
/// input, because its views have several dtypes or symbolic sizes.
Result<SharedInputs> separate_inputs(Graph& graph, GraphInputs& inputs, bool bases);

}  // namespace partita
