#pragma once
#include "core/ir/meta.h"
#include "core/sym/shape_env.h"
#include "core/tensor/device.h"

namespace partita {

class FakeCall;

/// Whether a tensor is row-major, as Tensor.is_contiguous(): sizes of 1 are ignored. Symbolic strides must be equal as
/// expressions.
bool is_row_major(const TensorMeta& meta);
/// Tensor.suggest_memory_format(): channels last when the strides fit only that format. Symbols count with their hints,
/// without a guard; a tensor with unknown hints counts as contiguous.
MemoryFormat suggest_memory_format(const TensorMeta& meta, const ShapeEnv& shapes);
/// Strides of a new dense tensor. Channels last becomes row-major for ranks that do not have that format.
SymList strides_for(MemoryFormat format, const SymList& sizes);
/// A dense tensor like `like` in dtype and device, with other sizes.
TensorMeta new_like(const TensorMeta& like, SymList sizes, MemoryFormat format = MemoryFormat::Contiguous);
/// torch.empty_like: strides are kept where they are dense and do not overlap; else they are dense, in the order of
/// `like`'s.
TensorMeta like_preserving(const TensorMeta& like, const ShapeEnv& shapes);

/// Metas of results like argument `self`: row-major, or in its strides (like_preserving).
Meta row_major_self(FakeCall& call);
Meta preserving_self(FakeCall& call);

/// The meta of a result that is computed only when wanted; unknown (None) otherwise.
Meta meta_if(bool wanted, TensorMeta meta);

}  // namespace partita
