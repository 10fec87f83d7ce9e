#pragma once
// What views say in `write_through`: `base` with what the step shows of it replaced by `value`.
#include "core/ops/record/record.h"

namespace partita {

/// The value as it is.
Node* pass_on(Builder& build, const ViewStep& step, Node* base, Node* value);
/// The value in the sizes of the base.
Node* reshape_back(Builder& build, const ViewStep& step, Node* base, Node* value);
/// The same view of the value: of views that undo themselves.
Node* view_again(Builder& build, const ViewStep& step, Node* base, Node* value);
Node* permute_back(Builder& build, const ViewStep& step, Node* base, Node* value);
Node* squeeze_back(Builder& build, const ViewStep& step, Node* base, Node* value);
Node* unsqueeze_back(Builder& build, const ViewStep& step, Node* base, Node* value);
Node* real_back(Builder& build, const ViewStep& step, Node* base, Node* value);
Node* complex_back(Builder& build, const ViewStep& step, Node* base, Node* value);
Node* dtype_back(Builder& build, const ViewStep& step, Node* base, Node* value);
/// The scatter of the same arguments: slice_scatter of slice. Trailing arguments that say no more than the default does
/// are left out, as PyTorch prints it.
Node* scatter_back(Builder& build, const ViewStep& step, Node* base, Node* value);
Node* split_back(Builder& build, const ViewStep& step, Node* base, Node* value);
/// Of windows that do not overlap.
Node* unfold_back(Builder& build, const ViewStep& step, Node* base, Node* value);
Node* unbind_back(Builder& build, const ViewStep& step, Node* base, Node* value);

}  // namespace partita
