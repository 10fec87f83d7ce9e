#pragma once
#include "core/ir/meta.h"
#include "core/sym/shape_env.h"
#include "core/tensor/device.h"

namespace partita {

/// Row-major with sizes of 1 ignored, as Tensor.is_contiguous(); symbolic strides must be equal as expressions.
bool is_row_major(const TensorMeta& meta);
/// Tensor.suggest_memory_format(): channels last when the strides say so without ambiguity. Symbols go by their hints,
/// without a guard; a tensor whose hints are unknown counts as contiguous.
MemoryFormat suggest_memory_format(const TensorMeta& meta, const ShapeEnv& shapes);
/// Strides of a new dense tensor; channels last falls back to row-major for other ranks than its own.
SymList strides_for(MemoryFormat format, const SymList& sizes);
/// A dense tensor like `like` in dtype and device, with other sizes.
TensorMeta new_like(const TensorMeta& like, SymList sizes, MemoryFormat format = MemoryFormat::Contiguous);
/// torch.empty_like: strides kept where dense and non-overlapping, else in the order of `like`'s strides.
TensorMeta like_preserving(const TensorMeta& like, const ShapeEnv& shapes);

/// The meta of a result that is computed on demand: unknown (None) when it is not wanted.
Meta meta_if(bool wanted, TensorMeta meta);

}  // namespace partita
