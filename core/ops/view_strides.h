#pragma once
#include <optional>

#include "core/ops/call.h"

namespace partita {

/// Strides of a view of another size (THTensor's computeStride): nullopt when the elements do not lie so that one
/// exists.
std::optional<SymList> view_strides(const FakeCall& call, const SymList& old_sizes, const SymList& old_strides,
                                    const SymList& new_sizes);
/// Sizes with one -1 replaced by what `numel` leaves for it. Fails in PyTorch's words.
SymList infer_size(const FakeCall& call, const SymList& shape, SymExpr numel);

}  // namespace partita
