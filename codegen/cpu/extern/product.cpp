// Products with fixed weights by a kernel of our own, which brings the next weights from memory while it computes.
#include "codegen/cpu/extern/product.h"

#include <algorithm>
#include <iterator>

#include "codegen/cpu/extern/product_kernel.h"
#include "codegen/cpu/extern/row_blocks.h"
#include "core/base/threads.h"
#include "core/tensor/tensor.h"

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

/// The right matrix of a product, packed when its address changes. All its dimensions but the last are those of depth.
class PackedRight {
 public:
  PackedRight(const ProductKernel& kernel, int threads, ConcreteView right, std::shared_ptr<PackedWeights> weights)
      : kernel_(kernel), threads_(threads), right_(std::move(right)), weights_(std::move(weights)) {}
  std::int64_t panels() const { return (right_.sizes.back() + kernel_.panel_columns - 1) / kernel_.panel_columns; }

  const float* at(std::byte* const* buffers) {
    std::byte* plain = right_.at(buffers);
    if (plain != packed_from_) pack(plain);
    packed_from_ = plain;
    return static_cast<const float*>(packed_->get_data_handle());
  }

 private:
  void pack(std::byte* at) {
    memory plain(*describe(right_), cpu_engine(), at);
    const std::int64_t columns = right_.sizes.back(), depth = numel(right_.sizes) / columns;
    const memory::desc wanted({kernel_.packed_elements(depth, columns)}, memory::data_type::f32, memory::format_tag::a);
    packed_ = weights_->packed(plain, wanted, [&](memory& made) {
      const auto* from = reinterpret_cast<const float*>(at);
      std::int64_t row = right_.strides[0], column = right_.strides.back();
      std::vector<float> rows;
      if (right_.sizes.size() == 3) {
        rows = in_order(from);
        from = rows.data(), row = 1, column = depth;
      }
      parallel_for(threads_, panels(), 1, 1, [&](std::int64_t first, std::int64_t last, int) {
        kernel_.pack(from, row, column, depth, columns, first, last, static_cast<float*>(made.get_data_handle()));
      });
    });
  }
  /// A matrix of three dimensions, column after column.
  std::vector<float> in_order(const float* from) const {
    std::vector<float> rows;
    rows.reserve(static_cast<std::size_t>(numel(right_.sizes)));
    const Sizes& s = right_.strides;
    for (std::int64_t c = 0; c < right_.sizes[2]; ++c)
      for (std::int64_t i = 0; i < right_.sizes[0]; ++i)
        for (std::int64_t j = 0; j < right_.sizes[1]; ++j) rows.push_back(from[i * s[0] + j * s[1] + c * s[2]]);
    return rows;
  }

  const ProductKernel& kernel_;
  int threads_;
  ConcreteView right_;
  std::shared_ptr<PackedWeights> weights_;
  std::shared_ptr<memory> packed_;
  const void* packed_from_ = nullptr;
};

/// left * right + added, as matrices.
struct ProductCall {
  ConcreteView left;
  PackedRight right;
  std::optional<ConcreteView> added;
  ConcreteView out;

  ProductProblem problem(std::byte* const* buffers) {
    ProductProblem p;
    p.columns = out.sizes[1];
    p.depth = left.sizes[1];
    p.left_row = left.strides[0];
    p.out_row = out.strides[0];
    if (added) p.added_row = added->sizes[0] == 1 ? 0 : added->strides[0];
    p.left = reinterpret_cast<const float*>(left.at(buffers));
    p.out = reinterpret_cast<float*>(out.at(buffers));
    if (added) p.added = reinterpret_cast<const float*>(added->at(buffers));
    p.packed = right.at(buffers);
    return p;
  }
};

/// A thread computes some panels of columns, so that it alone reads their weights, for rows that stay in its cache.
class ProductStep final : public ExternStep {
 public:
  ProductStep(const ProductKernel& kernel, int threads, ProductCall call)
      : kernel_(kernel), threads_(threads), call_(std::move(call)) {}

  std::optional<ClampedSum> work;  ///< done in registers

  Status run(std::byte* const* buffers) override {
    constexpr std::int64_t most_rows = 256;  // of the left matrix, which stay in the second cache
    ProductProblem problem = call_.problem(buffers);
    if (work) problem.work = register_work(*work, call_.out, buffers);
    const std::int64_t rows = call_.out.sizes[0], chunks = (rows + most_rows - 1) / most_rows;
    const std::int64_t panels = call_.right.panels();
    // A part must do more work than waking a thread costs. An element of the weights costs as much as 8 rows.
    constexpr std::int64_t part_work = 400'000;
    const std::int64_t panel_work = 2 * (rows / chunks + 8) * problem.depth * kernel_.panel_columns;
    parallel_for(threads_, chunks * panels, (part_work - 1) / panel_work + 1, 1,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t at = begin; at < end;) {
                     const std::int64_t chunk = at / panels, first = at % panels;
                     const std::int64_t n = std::min(end - at, panels - first);
                     kernel_.run(problem, rows * chunk / chunks, rows * (chunk + 1) / chunks, first, first + n);
                     at += n;
                   }
                 });
    return {};
  }

 private:
  const ProductKernel& kernel_;
  int threads_;
  ProductCall call_;
};

/// The pixels of images, each multiplied with the weights. A thread computes some rows of an image.
class PixelsStep final : public RowBlocksStep {
 public:
  PixelsStep(const ProductKernel& kernel, int threads, ProductCall call, const ConcreteView& images,
             std::vector<RowBlock> blocks)
      : RowBlocksStep(threads, images, std::move(blocks)),
        kernel_(kernel),
        call_(std::move(call)),
        height_(images.sizes[2]),
        width_(images.sizes[3]) {}

 protected:
  std::size_t begin(std::byte* const* buffers) override {
    problem_ = call_.problem(buffers);
    return 0;
  }
  void compute(const RowBlock& b, std::byte*) override {
    const std::int64_t row = b.image * height_ + b.first;
    ProductProblem problem = problem_;
    problem.work = RowBlocksStep::register_work({});  // of the first image, with which the matrix begins
    kernel_.run(problem, row * width_, (row + b.rows) * width_, 0, call_.right.panels());
  }

 private:
  const ProductKernel& kernel_;
  ProductCall call_;
  ProductProblem problem_;
  std::int64_t height_, width_;
};

}  // namespace

Prepared prepare_product(const ExternContext& context, const ConcreteView& left, const ConcreteView& right,
                         const std::optional<ConcreteView>& added, const ConcreteView& out,
                         const ConcreteView* images) {
  const ProductKernel* found = kernel();
  if (!found || !context.fixed(right.buffer) || out.sizes.size() != 2) return {};
  const auto by_rows = [](const ConcreteView& v) {
    return v.dtype == DType::Float32 && (v.strides[1] == 1 || v.sizes[1] == 1);
  };
  if (!by_rows(left) || !by_rows(out) || right.dtype != DType::Float32 || !describe(right)) return {};
  if (left.sizes[0] == 0 || left.sizes[1] == 0 || out.sizes[1] == 0 ||
      (added && (!by_rows(*added) || added->sizes[1] != out.sizes[1])))
    return {};
  ProductCall call{left, PackedRight(*found, context.threads, right, weights_of(context, right.buffer)), added, out};
  Prepared prepared{nullptr, std::string("Partita ") + found->name};
  if (images) {
    constexpr std::int64_t second_cache = 1 << 18;  // a good part of a core's
    const std::int64_t bytes = images->sizes[2] * images->sizes[3] * (left.sizes[1] + out.sizes[1]) * 4;
    auto step = std::make_unique<PixelsStep>(
        *found, context.threads, std::move(call), *images,
        share_rows(images->sizes[0], images->sizes[2], 1, (bytes - 1) / second_cache + 1, context.threads));
    prepared.work = step->take_work(context.work, prepared.does_work);
    prepared.step = std::move(step);
    return prepared;
  }
  auto step = std::make_unique<ProductStep>(*found, context.threads, std::move(call));
  if (context.work) step->work = context.work->simple;
  prepared.does_work = step->work.has_value();
  prepared.step = std::move(step);
  prepared.work = prepared.does_work
                      ? "in registers"
                      : "a kernel of its own: threads share the product by columns, and the work by rows";
  return prepared;
}

}  // namespace partita::codegen
