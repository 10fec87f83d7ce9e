#pragma once
#include <optional>
#include <vector>

#include "core/ops/record/record.h"

namespace partita {

/// One view call, kept so that it can be repeated on newer memory.
struct ViewStep {
  const Op* op = nullptr;
  Args args;      ///< in schema order, with defaults; the viewed tensor's place is empty
  int self = 0;   ///< index of the viewed tensor in args
  int part = -1;  ///< index of the result, if the call makes several views; else -1
};

/// A step's arguments as its call writes them.
struct ViewArguments {
  Args args;
  Kwargs kwargs;
};
ViewArguments arguments(const ViewStep& step, Node* base);

/// Makes the view of `base` that a step describes; for a call with several views, the one at `part`.
Node* apply_view(Builder& build, const ViewStep& step, Node* base);
/// Returns `base` with the viewed part replaced by `value`, using the scatter or inverse view that PyTorch's
/// functionalization uses. Raises functionalize.view for views that cannot be written through.
Node* write_through_view(Builder& build, const ViewStep& step, Node* base, Node* value);

/// For `unchanged_if`: whatever the arguments are.
inline bool any_arguments(const Args&) {
  return true;
}

/// Result dimension i is dimension order[i] of the first argument; nullopt when the node reorders none, or not by
/// constants.
std::optional<std::vector<std::int64_t>> dimension_order(const Node& node);

}  // namespace partita
