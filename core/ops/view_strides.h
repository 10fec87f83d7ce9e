#pragma once
#include <optional>

#include "core/ops/call.h"

namespace partita {

struct ViewGeometry {
  SymList sizes, strides;
};
/// A view of another size; nullopt when the elements do not lie so that one exists. Integers give the strides of
/// at::detail::computeStride, symbolic sizes those of FakeTensor's view (torch._refs._reshape_view_helper, or
/// _view_unbacked_meta where a size is known only at run time): the two differ where a size is 1. The sizes equal
/// `new_sizes`; symbolic ones are the expressions that FakeTensor's view makes of the old ones.
std::optional<ViewGeometry> view_geometry(const FakeCall& call, const SymList& old_sizes, const SymList& old_strides,
                                          const SymList& new_sizes);
/// Sizes with one -1 replaced by what `numel` leaves for it. Fails in PyTorch's words.
SymList infer_size(const FakeCall& call, const SymList& shape, SymExpr numel);

}  // namespace partita
