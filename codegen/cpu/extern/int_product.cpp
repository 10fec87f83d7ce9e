// Products of integers of 8 bits, for processors without VNNI: as floats, which hold sums of so few of them exactly.
#include <algorithm>

#include "codegen/cpu/extern/packed_right.h"
#include "codegen/cpu/extern/product.h"
#include "codegen/cpu/extern/product_kernel.h"
#include "core/base/threads.h"

namespace partita::codegen {
namespace {

constexpr std::int64_t most_depth = 512;  // 255 * 128 * 512 is less than 2^24

class IntProduct final : public ExternStep {
 public:
  IntProduct(const ProductKernel& kernel, const ExternContext& context, ConcreteView left, const ConcreteView& right,
             ConcreteView out)
      : kernel_(kernel), threads_(context.threads), left_(std::move(left)), out_(std::move(out)) {
    for (std::int64_t first = 0; first < depth(); first += most_depth) {
      ConcreteView block = right;
      block.sizes[0] = std::min(most_depth, depth() - first);
      block.offset += first * right.strides[0];
      rights_.emplace_back(kernel, context.threads, std::move(block), weights_of(context, right.buffer));
    }
  }

  Status run(std::byte* const* buffers) override {
    // Kept for other products on this thread: fresh memory costs more than to fill it.
    static thread_local std::vector<float> left, sums;
    const std::int64_t rows = out_.sizes[0], columns = out_.sizes[1];
    left.resize(static_cast<std::size_t>(rows * depth()));
    sums.resize(static_cast<std::size_t>(rows * columns));
    constexpr std::int64_t least_rows = 16;
    parallel_for(threads_, rows, least_rows, 1, [&, to = left.data()](std::int64_t first, std::int64_t last, int) {
      if (left_.dtype == DType::UInt8)
        widen<std::uint8_t>(left_.at(buffers), first, last, to);
      else
        widen<std::int8_t>(left_.at(buffers), first, last, to);
    });
    std::vector<const void*> packed;
    for (PackedRight& right : rights_) packed.push_back(right.at(buffers));
    auto* const out = reinterpret_cast<std::int32_t*>(out_.at(buffers));
    const std::int64_t panel_work = 2 * (rows + 8) * depth() * kernel_.panel_columns;
    parallel_for(threads_, rights_[0].panels(), (part_work - 1) / panel_work + 1, 1,
                 [&, from = left.data(), to = sums.data()](std::int64_t first, std::int64_t last, int) {
                   const std::int64_t begin = first * kernel_.panel_columns;
                   const std::int64_t end = std::min(last * kernel_.panel_columns, columns);
                   for (std::size_t i = 0; i < rights_.size(); ++i) {
                     const std::int64_t at = static_cast<std::int64_t>(i) * most_depth;
                     ProductProblem p{columns, std::min(most_depth, depth() - at), from + at, packed[i]};
                     p.left_row = depth();
                     p.out = to;
                     p.out_row = columns;
                     for (std::int64_t row = 0; row < rows; row += most_rows)
                       rights_[i].run(p, row, std::min(row + most_rows, rows), first, last);
                     add(to, begin, end, i == 0, out);
                   }
                 });
    return {};
  }

 private:
  std::int64_t depth() const { return left_.sizes[1]; }

  template <class T>
  void widen(const std::byte* data, std::int64_t first, std::int64_t last, float* to) const {
    const auto* const from = reinterpret_cast<const T*>(data);
    for (std::int64_t row = first; row < last; ++row)
      for (std::int64_t i = 0; i < depth(); ++i)
        to[row * depth() + i] = static_cast<float>(from[row * left_.strides[0] + i * left_.strides[1]]);
  }
  /// Adds columns [begin, end) of the sums to the result, which they are if they are the first. int32 wraps around.
  void add(const float* sums, std::int64_t begin, std::int64_t end, bool are_first, std::int32_t* out) const {
    const std::int64_t columns = out_.sizes[1];
    for (std::int64_t row = 0; row < out_.sizes[0]; ++row)
      for (std::int64_t c = begin; c < end; ++c) {
        std::int32_t& to = out[row * out_.strides[0] + c * out_.strides[1]];
        const auto sum = static_cast<std::uint32_t>(static_cast<std::int32_t>(sums[row * columns + c]));
        to = static_cast<std::int32_t>(are_first ? sum : static_cast<std::uint32_t>(to) + sum);
      }
  }

  const ProductKernel& kernel_;
  int threads_;
  ConcreteView left_, out_;
  std::vector<PackedRight> rights_;  ///< of parts of the depth
};

}  // namespace

Prepared prepare_int_product(const ExternContext& context, const ConcreteView& left, const ConcreteView& right,
                             const ConcreteView& out) {
  const ProductKernel* kernel = product_kernel();
  for (const ConcreteView* v : {&left, &right, &out})
    if (v->sizes.size() != 2 || std::ranges::count(v->sizes, 0) != 0) return {};
  if (!kernel || !context.fixed(right.buffer) || (left.dtype != DType::Int8 && left.dtype != DType::UInt8) ||
      right.dtype != DType::Int8 || out.dtype != DType::Int32 || !describe_right(right))
    return {};
  return {std::make_unique<IntProduct>(*kernel, context, left, right, out), std::string("Partita ") + kernel->name};
}

}  // namespace partita::codegen
