#pragma once
// Rules that operators share: the dtype of a result, the size that operands broadcast to, and the result's strides.
#include <span>
#include <vector>

#include "core/ops/record/call.h"
#include "core/ops/record/record.h"

namespace partita {

/// An argument as type promotion sees it. Tensors with dimensions take precedence over 0-dim tensors, and these over
/// numbers.
struct Operand {
  enum class Rank : unsigned char { Tensor, ZeroDim, Number };
  DType dtype = DType::Float32;
  Rank rank = Rank::Tensor;

  static Operand of(const TensorMeta& meta) { return {meta.dtype, meta.sizes.empty() ? Rank::ZeroDim : Rank::Tensor}; }
  static Operand of(const Number& n) { return {number_dtype(n), Rank::Number}; }
  static Operand of_number(const Node& number);  ///< a number that the graph computes
};

/// torch.result_type.
DType result_type(std::span<const Operand> operands);

struct Promoted {
  DType common;   ///< what the operands are converted to
  DType compute;  ///< dtype of the arithmetic; never a half type
  DType result;
};
/// torch._prims_common.elementwise_dtypes.
Promoted promote(Promotion kind, std::span<const Operand> operands);

/// The size that all broadcast to. Fails with PyTorch's message when there is none.
SymList broadcast(const FakeCall& call, std::span<const SymList> sizes);

/// The strides that TensorIterator gives an output of `sizes` computed from `operands`: those of the operands when all
/// agree and are dense, else dense strides in the operands' order. When an operand has another size than `sizes` (a
/// wrapped number has size []) only the second rule applies.
SymList elementwise_strides(const FakeCall& call, const SymList& sizes, std::span<const TensorMeta* const> operands);

/// What strides say of a layout, as PyTorch decides it; guards are taken where they are symbolic.
bool is_contiguous(const FakeCall& call, const SymList& sizes, const SymList& strides);
bool is_channels_last(const FakeCall& call, const SymList& sizes, const SymList& strides);  ///< 4-d and 5-d
bool is_non_overlapping_and_dense(const FakeCall& call, const SymList& sizes, const SymList& strides);
SymList channels_last_strides(const SymList& sizes);  ///< 4-d and 5-d
/// Strides of a new tensor like `self` in a memory format (Preserve: elementwise_strides of self alone).
SymList strides_like(const FakeCall& call, const TensorMeta& self, const SymList& sizes, MemoryFormat format);

/// A dimension argument in [0, rank). Fails with PyTorch's message. Rank 0 counts as rank 1.
std::size_t wrap_dim(std::int64_t dim, std::size_t rank);

}  // namespace partita
