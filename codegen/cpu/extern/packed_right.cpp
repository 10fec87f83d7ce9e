#include "codegen/cpu/extern/packed_right.h"

#include "codegen/cpu/extern/product.h"
#include "codegen/cpu/extern/product_kernel.h"
#include "core/base/threads.h"
#include "core/tensor/tensor.h"

namespace partita::codegen {

using dnnl::memory;

std::optional<NarrowType> narrow_type(DType dtype) {
  if (dtype == DType::BFloat16) return NarrowType::BFloat16;
  if (dtype == DType::Float16) return NarrowType::Float16;
  if (dtype == DType::Int8) return NarrowType::Int8;
  return std::nullopt;
}

std::optional<memory::desc> describe_right(const ConcreteView& right) {
  const auto narrow = narrow_type(right.dtype);
  if (!narrow) return describe(right);
  using enum memory::data_type;
  return describe(right, *narrow == NarrowType::Int8 ? s8 : *narrow == NarrowType::Float16 ? f16 : bf16);
}

PackedRight::PackedRight(const ProductKernel& kernel, int threads, ConcreteView right,
                         std::shared_ptr<PackedWeights> weights)
    : kernel_(kernel),
      threads_(threads),
      right_(std::move(right)),
      narrow_(narrow_type(right_.dtype)),
      weights_(std::move(weights)) {}

std::int64_t PackedRight::panels() const {
  return panels_of(kernel_, right_.sizes.back());
}

const void* PackedRight::at(std::byte* const* buffers) {
  std::byte* plain = right_.at(buffers);
  if (plain != packed_from_) pack(plain);
  packed_from_ = plain;
  return packed_->get_data_handle();
}

void PackedRight::run(const ProductProblem& problem, std::int64_t first_row, std::int64_t last_row, std::int64_t first,
                      std::int64_t last) const {
  if (narrow_) return kernel_.narrow->run(*narrow_, problem, first_row, last_row, first, last);
  kernel_.run(problem, first_row, last_row, first, last);
}

void PackedRight::pack(std::byte* at) {
  memory plain(*describe_right(right_), cpu_engine(), at);
  const std::int64_t columns = right_.sizes.back(), depth = numel(right_.sizes) / columns;
  const memory::desc wanted({kernel_.packed_elements(depth, columns)}, plain.get_desc().data_type(),
                            memory::format_tag::a);
  packed_ = weights_->packed(plain, wanted, [&](memory& made) {
    const auto* from = reinterpret_cast<const float*>(at);
    std::int64_t row = right_.strides[0], column = right_.strides.back();
    std::vector<float> rows;
    if (right_.sizes.size() == 3) {
      rows = in_order(from);
      from = rows.data(), row = 1, column = depth;
    }
    void* const to = made.get_data_handle();
    parallel_for(threads_, panels(), 1, 1, [&](std::int64_t first, std::int64_t last, int) {
      if (narrow_)
        kernel_.narrow->pack(*narrow_, at, row, column, depth, columns, first, last, to);
      else
        kernel_.pack(from, row, column, depth, columns, first, last, static_cast<float*>(to));
    });
  });
}

std::vector<float> PackedRight::in_order(const float* from) const {
  std::vector<float> rows;
  rows.reserve(static_cast<std::size_t>(numel(right_.sizes)));
  const Sizes& s = right_.strides;
  for (std::int64_t c = 0; c < right_.sizes[2]; ++c)
    for (std::int64_t i = 0; i < right_.sizes[0]; ++i)
      for (std::int64_t j = 0; j < right_.sizes[1]; ++j) rows.push_back(from[i * s[0] + j * s[1] + c * s[2]]);
  return rows;
}

}  // namespace partita::codegen
