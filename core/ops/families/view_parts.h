#pragma once
#include "core/ops/record/record.h"

namespace partita {

/// The meta with which a view's fake starts: dtype, device, storage, sizes and strides of the base.
TensorMeta view_meta(const TensorMeta& base);

/// Strides of a copy that keeps self's (clone_preserve_strides). Where elements of self share memory they are a dense
/// clone's.
SymList cloned_strides(const FakeCall& call, const TensorMeta& self);

/// Fails when a call would have more results than a file may have nodes.
void check_result_count(const FakeCall& call, std::int64_t count);

struct SliceRange {
  SymExpr start, length, step;
};
/// The range that the arguments start, end and step of a slice select, by Python's rules, in a dimension of `size`.
SliceRange slice_range(const FakeCall& call, SymExpr size);

namespace loops {  // view_lower.cpp
/// Views as loops see them: lower_NAME is that of aten.NAME.
void lower_alias(LowerCall& call);
void lower_reshape(LowerCall& call);
void lower_expand(LowerCall& call);
void lower_permute(LowerCall& call);
void lower_t(LowerCall& call);
void lower_transpose(LowerCall& call);
void lower_select(LowerCall& call);
void lower_slice(LowerCall& call);
void lower_split(LowerCall& call);
void lower_split_sizes(LowerCall& call);
void lower_unbind(LowerCall& call);
void lower_as_strided(LowerCall& call);
void lower_diagonal(LowerCall& call);
}  // namespace loops

// The parts of the view family that have files of their own.

}  // namespace partita
