// Products with fixed weights by a kernel of our own, which brings the next weights from memory while it computes.
#include "codegen/cpu/extern/product.h"

#include <algorithm>
#include <iterator>

#include "codegen/cpu/extern/product_kernel.h"
#include "core/base/threads.h"

namespace partita::codegen {
namespace {

using dnnl::memory;

/// Null where the processor has none.
const ProductKernel* kernel() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("x86-64-v4")) return &product_avx512;
#endif
  return nullptr;
}

/// A thread computes some panels of columns, so that it alone reads their weights, for rows that stay in its cache.
class ProductStep final : public ExternStep {
 public:
  ProductStep(const ProductKernel& kernel, int threads, ConcreteView left, ConcreteView right,
              std::optional<ConcreteView> added, ConcreteView out, std::shared_ptr<PackedWeights> weights)
      : kernel_(kernel),
        threads_(threads),
        left_(std::move(left)),
        right_(std::move(right)),
        out_(std::move(out)),
        added_(std::move(added)),
        weights_(std::move(weights)),
        panels_((out_.sizes[1] + kernel.panel_columns - 1) / kernel.panel_columns) {
    problem_.columns = out_.sizes[1];
    problem_.depth = left_.sizes[1];
    problem_.left_row = left_.strides[0];
    problem_.out_row = out_.strides[0];
    if (added_) problem_.added_row = added_->sizes[0] == 1 ? 0 : added_->strides[0];
  }

  Status run(std::byte* const* buffers) override {
    problem_.left = reinterpret_cast<const float*>(left_.at(buffers));
    problem_.out = reinterpret_cast<float*>(out_.at(buffers));
    if (added_) problem_.added = reinterpret_cast<const float*>(added_->at(buffers));
    if (std::byte* at = right_.at(buffers); at != packed_from_) {
      pack(at);
      packed_from_ = at;
    }
    const std::int64_t rows = out_.sizes[0], chunks = (rows + most_rows - 1) / most_rows;
    // A part must do more work than waking a thread costs. An element of the weights costs as much as 8 rows.
    constexpr std::int64_t part_work = 400'000;
    const std::int64_t panel_work = 2 * (rows / chunks + 8) * problem_.depth * kernel_.panel_columns;
    parallel_for(threads_, chunks * panels_, (part_work - 1) / panel_work + 1, 1,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t at = begin; at < end;) {
                     const std::int64_t chunk = at / panels_, first = at % panels_;
                     const std::int64_t n = std::min(end - at, panels_ - first);
                     kernel_.run(problem_, rows * chunk / chunks, rows * (chunk + 1) / chunks, first, first + n);
                     at += n;
                   }
                 });
    return {};
  }

 private:
  static constexpr std::int64_t most_rows = 256;  ///< of the left matrix, which stay in the second cache

  void pack(std::byte* at) {
    memory plain(*describe(right_), cpu_engine(), at);
    const std::int64_t depth = problem_.depth, columns = problem_.columns;
    const memory::desc wanted({kernel_.packed_elements(depth, columns)}, memory::data_type::f32, memory::format_tag::a);
    packed_ = weights_->packed(plain, wanted, [&](memory& made) {
      parallel_for(threads_, panels_, 1, 1, [&](std::int64_t first, std::int64_t last, int) {
        kernel_.pack(reinterpret_cast<const float*>(at), right_.strides[0], right_.strides[1], depth, columns, first,
                     last, static_cast<float*>(made.get_data_handle()));
      });
    });
    problem_.packed = static_cast<const float*>(packed_->get_data_handle());
  }

  const ProductKernel& kernel_;
  int threads_;
  ConcreteView left_, right_, out_;
  std::optional<ConcreteView> added_;
  std::shared_ptr<PackedWeights> weights_;
  std::int64_t panels_;
  ProductProblem problem_;
  std::shared_ptr<memory> packed_;
  const void* packed_from_ = nullptr;
};

}  // namespace

Prepared prepare_product(const ExternContext& context, const ConcreteView& left, const ConcreteView& right,
                         const std::optional<ConcreteView>& added, const ConcreteView& out) {
  const ProductKernel* found = kernel();
  if (!found || !context.fixed(right.buffer) || out.sizes.size() != 2) return {};
  const auto by_rows = [](const ConcreteView& v) {
    return v.dtype == DType::Float32 && (v.strides[1] == 1 || v.sizes[1] == 1);
  };
  if (!by_rows(left) || !by_rows(out) || right.dtype != DType::Float32 || !describe(right)) return {};
  if (left.sizes[0] == 0 || left.sizes[1] == 0 || out.sizes[1] == 0 ||
      (added && (!by_rows(*added) || added->sizes[1] != out.sizes[1])))
    return {};
  return {std::make_unique<ProductStep>(*found, context.threads, left, right, added, out,
                                        weights_of(context, right.buffer)),
          std::string("Partita ") + found->name, false,
          "a kernel of its own: threads share the product by columns, and the work by rows"};
}

}  // namespace partita::codegen
