#pragma once
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/ops/functorch/functorch.h"

namespace partita {

/// Between _vmap_increment_nesting and _vmap_decrement_nesting a tensor that _add_batch_dim made has a dimension that
/// its meta does not show, which _remove_batch_dim shows again. The calls between are ATen calls. Replaces all of it by
/// calls on whole tensors (functorch's batching rules), or a map over the batch where there is no such rule. Returns
/// the call to go on with, which is the first new one. Errors: ops.vmap for what has another meaning in each part of a
/// batch, such as random numbers.
Result<Node*> replace_vmap(Node* end);
/// Gives _add_batch_dim and _remove_batch_dim their metas where the text has none.
Status give_vmap_meta(Node& call);

/// A call on tensors of which some have a batch dimension, before all others, that their nodes' metas do not show.
struct BatchedCall {
  const Node& node;  ///< its metas are without the batch
  Builder& build;    ///< makes calls before it
  Arg size;          ///< of the batch
  /// By node: what it is with the batch in front, one value for each item of a tuple; absent: it has no batch.
  const std::unordered_map<const Node*, std::vector<Arg>>& batched;

  bool has_batch(const Arg& value) const { return value.node() && batched.contains(value.node()); }
  const Arg& whole(const Arg& value) const { return batched.at(value.node()).front(); }
  static std::size_t rank(const Arg& value) { return Builder::tensor(value).sizes.size(); }  ///< without the batch
};

/// A tensor without a batch for each part of one.
Arg for_each_part(Builder& build, const Arg& tensor, const Arg& size);

/// The results as whole tensors, by the operator's rule; nullopt when it has none for such arguments. Raises what the
/// calls that it makes raise.
std::optional<std::vector<Arg>> call_on_batch(const BatchedCall& call);

}  // namespace partita
