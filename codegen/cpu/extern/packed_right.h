#pragma once
#include "codegen/cpu/extern/onednn.h"

namespace partita::codegen {

struct ProductKernel;
struct ProductProblem;
enum class NarrowType : std::uint8_t;
/// Of elements that kernels widen to floats; nullopt for others.
std::optional<NarrowType> narrow_type(DType dtype);

/// A product's right matrix as oneDNN describes memory; nullopt for strides that it does not allow.
std::optional<dnnl::memory::desc> describe_right(const ConcreteView& right);

/// The right matrix of products by our own kernel, packed when its address changes. All its dimensions but the last are
/// those of depth; only floats may have two. Narrow elements stay what they are.
class PackedRight {
 public:
  /// Precondition: describe_right() describes it.
  PackedRight(const ProductKernel& kernel, int threads, ConcreteView right, std::shared_ptr<PackedWeights> weights);
  std::int64_t panels() const;
  const void* at(std::byte* const* buffers);
  /// ProductKernel's `run`, for what at() gave.
  void run(const ProductProblem& problem, std::int64_t first_row, std::int64_t last_row, std::int64_t first,
           std::int64_t last) const;

 private:
  void pack(std::byte* at);
  /// A matrix of three dimensions, column after column.
  std::vector<float> in_order(const float* from) const;

  const ProductKernel& kernel_;
  int threads_;
  ConcreteView right_;
  std::optional<NarrowType> narrow_;
  std::shared_ptr<PackedWeights> weights_;
  std::shared_ptr<dnnl::memory> packed_;
  const void* packed_from_ = nullptr;
};

}  // namespace partita::codegen
