#pragma once
#include "codegen/cpu/extern/onednn.h"

namespace partita::codegen {

struct ProductKernel;
/// The kernel of our own products; null where the processor has none.
const ProductKernel* product_kernel();
/// The panels in which the kernel packs a matrix of as many columns.
std::int64_t panels_of(const ProductKernel& kernel, std::int64_t columns);
constexpr std::int64_t part_work = 400'000;  ///< operations: a thread's part must do more than waking it costs
constexpr std::int64_t most_rows = 256;      ///< of a product's left matrix, which stay in the second cache
/// Copies rows [first, last) of a matrix to the same rows of `to`, whose elements are adjacent. `row`, `step`: the
/// distances of rows and of a row's elements.
void copy_rows(const ProductKernel& kernel, const float* from, std::int64_t row, std::int64_t step, std::int64_t first,
               std::int64_t last, std::int64_t depth, float* to);
/// Are our own products of this processor faster than oneDNN's, whatever the matrices?
bool own_products_are_faster();
/// Is the sum of so many products, which oneDNN's kernels for adjacent channels, and its products, add up in one row,
/// more than twice as far from the result in double as PyTorch's, which adds up several sums? Our kernel does, too.
constexpr bool is_long_sum(std::int64_t products) {
  return products > 320;
}

/// A product of matrices of single precision by a kernel of our own; the step is null where oneDNN is to compute it:
/// without AVX2, for results whose columns are not adjacent, and for weights that are not fixed, unless
/// own_products_are_faster() or is_long_sum(). Rows of `left` may overlap, and `right`, if it is fixed, may have two
/// dimensions of depth, or elements that are narrower. `added` has the sizes of `out` or 1. `images`: what the rows of
/// `out` are the pixels of, if threads are to share them by rows of images, with the work that follows; null: they
/// share the columns.
Prepared prepare_product(const ExternContext& context, const ConcreteView& left, const ConcreteView& right,
                         const std::optional<ConcreteView>& added, const ConcreteView& out,
                         const ConcreteView* images = nullptr);

/// Of matrices of 8-bit integers, the right one fixed, whose sums are int32.
Prepared prepare_int_product(const ExternContext& context, const ConcreteView& left, const ConcreteView& right,
                             const ConcreteView& out);

/// Of batches of matrices of single precision, whatever changes, where own_products_are_faster().
Prepared prepare_batched_product(const ExternContext& context, const ConcreteView& left, const ConcreteView& right,
                                 const ConcreteView& out);

}  // namespace partita::codegen
