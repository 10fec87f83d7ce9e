#pragma once
#include <optional>
#include <vector>

#include "core/ops/record.h"

namespace partita {

/// One view call, kept so that it can be done again on newer memory.
struct ViewStep {
  const Op* op = nullptr;
  Args args;      ///< in schema order, defaults filled in, the viewed tensor's place empty
  int self = 0;   ///< that place
  int part = -1;  ///< of a call with many views: which one
};

/// The view of `base` that a step makes, as a node; of a call with many views, the part.
Node* apply_view(Builder& build, const ViewStep& step, Node* base);
/// `base` with what the step shows of it replaced by `value`: the scatter or the inverse view that functional tensors
/// use. Raises functionalize.view for views nobody can write through.
Node* write_through_view(Builder& build, const ViewStep& step, Node* base, Node* value);

/// For `unchanged_if`: whatever the arguments are.
inline bool any_arguments(const Args&) {
  return true;
}

/// Result dimension i is dimension order[i] of the first argument; nullopt when the node reorders none, or not by
/// constants.
std::optional<std::vector<std::int64_t>> dimension_order(const Node& node);

}  // namespace partita
