#pragma once
#include <optional>

#include "core/ops/record/call.h"

namespace partita {

struct ViewGeometry {
  SymList sizes, strides;
};
/// A view of another size; nullopt when the strides do not allow one. For integers the strides are those of
/// at::detail::computeStride, for symbolic sizes those of FakeTensor's view (torch._refs._reshape_view_helper, or
/// _view_unbacked_meta where a size is known only at run time); the two differ for sizes of 1. The sizes equal
/// `new_sizes`; symbolic ones are the expressions that FakeTensor's view makes of the old sizes.
std::optional<ViewGeometry> view_geometry(const FakeCall& call, const SymList& old_sizes, const SymList& old_strides,
                                          const SymList& new_sizes);
/// The shape with a -1 replaced by what `numel` leaves for it. Fails with PyTorch's message.
SymList infer_size(const FakeCall& call, const SymList& shape, SymExpr numel);

}  // namespace partita
