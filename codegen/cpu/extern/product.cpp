// Products by a kernel of our own, which brings the next weights from memory while it computes.
#include "codegen/cpu/extern/product.h"

#include <algorithm>
#include <iterator>

#include "codegen/cpu/extern/packed_right.h"
#include "codegen/cpu/extern/product_kernel.h"
#include "codegen/cpu/extern/row_blocks.h"
#include "core/base/threads.h"
#include "core/tensor/tensor.h"

namespace partita::codegen {
namespace {

/// left * right + added, as matrices.
struct ProductCall {
  ConcreteView left, right;
  std::optional<ConcreteView> added;
  ConcreteView out;

  /// Without the packed matrix.
  ProductProblem problem(std::byte* const* buffers) const {
    ProductProblem p;
    p.columns = out.sizes[1];
    p.depth = left.sizes[1];
    p.left_row = left.strides[0];
    p.out_row = out.strides[0];
    if (added) p.added_row = added->sizes[0] == 1 ? 0 : added->strides[0];
    p.left = reinterpret_cast<const float*>(left.at(buffers));
    p.out = reinterpret_cast<float*>(out.at(buffers));
    if (added) p.added = reinterpret_cast<const float*>(added->at(buffers));
    return p;
  }
};

/// The columns from `first` on, whose packed matrix is yet to be given.
ProductProblem columns_of(ProductProblem p, std::int64_t first, std::int64_t columns) {
  p.columns = columns;
  p.out += first;
  if (p.added) p.added += first;
  if (p.work.added) p.work.added += first;
  return p;
}

bool by_rows(const ConcreteView& matrix) {
  return matrix.strides[1] == 1 || matrix.sizes[1] == 1;
}

class ProductStep : public ExternStep {
 public:
  ProductStep(const ProductKernel& kernel, int threads, ProductCall call)
      : kernel_(kernel), threads_(threads), call_(std::move(call)), rows_(call_.out.sizes[0]) {}

  std::optional<ClampedSum> work;  ///< done in registers

  Status run(std::byte* const* buffers) final {
    ProductProblem problem = call_.problem(buffers);
    if (work) problem.work = register_work(*work, call_.out, buffers);
    multiply(problem, buffers);
    return {};
  }

 protected:
  virtual void multiply(ProductProblem problem, std::byte* const* buffers) = 0;
  std::int64_t panels() const { return panels_of(kernel_, call_.out.sizes[1]); }

  const ProductKernel& kernel_;
  int threads_;
  ProductCall call_;
  std::int64_t rows_;
};

/// A thread computes some panels of columns, so that it alone reads their weights, for rows that stay in its cache.
class FixedProduct final : public ProductStep {
 public:
  FixedProduct(const ProductKernel& kernel, int threads, const ProductCall& call, PackedRight right)
      : ProductStep(kernel, threads, call), right_(std::move(right)) {}

 protected:
  void multiply(ProductProblem problem, std::byte* const* buffers) override {
    problem.packed = right_.at(buffers);
    const std::int64_t chunks = (rows_ + most_rows - 1) / most_rows, panels = this->panels();
    // An element of the weights costs as much as 8 rows.
    const std::int64_t panel_work = 2 * (rows_ / chunks + 8) * problem.depth * kernel_.panel_columns;
    parallel_for(threads_, chunks * panels, (part_work - 1) / panel_work + 1, 1,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t at = begin; at < end;) {
                     const std::int64_t chunk = at / panels, first = at % panels;
                     const std::int64_t n = std::min(end - at, panels - first);
                     right_.run(problem, rows_ * chunk / chunks, rows_ * (chunk + 1) / chunks, first, first + n);
                     at += n;
                   }
                 });
  }

 private:
  PackedRight right_;
};

/// Both matrices change from run to run. A thread packs a few panels of the right one for itself, and multiplies all
/// rows with them.
class ChangingProduct final : public ProductStep {
 public:
  using ProductStep::ProductStep;

 protected:
  void multiply(ProductProblem problem, std::byte* const* buffers) override {
    // Kept for other products on this thread: fresh memory costs more than to fill it.
    static thread_local std::vector<float> left;
    if (!by_rows(call_.left)) {
      in_rows(problem, left);
      problem.left = left.data();
      problem.left_row = problem.depth;
    }
    constexpr std::int64_t most_panels = 4;
    const std::int64_t panels = this->panels();
    const std::int64_t together = std::clamp<std::int64_t>(panels / threads_, 1, most_panels);
    const std::int64_t groups = (panels + together - 1) / together, width = together * kernel_.panel_columns;
    const std::int64_t row_parts = groups >= threads_ ? 1 : std::min<std::int64_t>(threads_, rows_);
    const auto* right = reinterpret_cast<const float*>(call_.right.at(buffers));
    const std::int64_t row = call_.right.strides[0], column = call_.right.strides[1];
    const std::int64_t task_work = 2 * (rows_ / row_parts + 8) * problem.depth * width;
    parallel_for(threads_, groups * row_parts, (part_work - 1) / task_work + 1, 1,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   static thread_local std::vector<float> packed;
                   for (std::int64_t task = begin; task < end; ++task) {
                     const std::int64_t first = task / row_parts * width, part = task % row_parts;
                     const std::int64_t n = std::min(width, problem.columns - first);
                     const std::int64_t of_group = panels_of(kernel_, n);
                     ProductProblem some = columns_of(problem, first, n);
                     packed.resize(static_cast<std::size_t>(kernel_.packed_elements(problem.depth, n)));
                     kernel_.pack(right + first * column, row, column, problem.depth, n, 0, of_group, packed.data());
                     some.packed = packed.data();
                     const std::int64_t from = rows_ * part / row_parts, to = rows_ * (part + 1) / row_parts;
                     const std::int64_t chunks = (to - from + most_rows - 1) / most_rows;
                     for (std::int64_t i = 0; i < chunks; ++i)
                       kernel_.run(some, from + (to - from) * i / chunks, from + (to - from) * (i + 1) / chunks, 0,
                                   of_group);
                   }
                 });
  }

 private:
  void in_rows(const ProductProblem& problem, std::vector<float>& rows) const {
    constexpr std::int64_t least_rows = 64;
    rows.resize(static_cast<std::size_t>(rows_ * problem.depth));
    const std::int64_t row = call_.left.strides[0], step = call_.left.strides[1], depth = problem.depth;
    parallel_for(threads_, rows_, least_rows, 1, [&](std::int64_t first, std::int64_t last, int) {
      copy_rows(kernel_, problem.left, row, step, first, last, depth, rows.data());
    });
  }
};

/// Many products; a thread computes some of them.
class BatchedProduct final : public ExternStep {
 public:
  BatchedProduct(const ProductKernel& kernel, int threads, ConcreteView left, ConcreteView right, ConcreteView out)
      : kernel_(kernel), threads_(threads), left_(std::move(left)), right_(std::move(right)), out_(std::move(out)) {}

  Status run(std::byte* const* buffers) override {
    const auto* left = reinterpret_cast<const float*>(left_.at(buffers));
    const auto* right = reinterpret_cast<const float*>(right_.at(buffers));
    auto* out = reinterpret_cast<float*>(out_.at(buffers));
    const std::int64_t rows = out_.sizes[1], columns = out_.sizes[2], depth = left_.sizes[2];
    const std::int64_t panels = panels_of(kernel_, columns);
    const std::int64_t work = 2 * (rows + 8) * depth * panels * kernel_.panel_columns;
    parallel_for(threads_, out_.sizes[0], (part_work - 1) / work + 1, 1,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   static thread_local std::vector<float> in_rows, packed;
                   packed.resize(static_cast<std::size_t>(kernel_.packed_elements(depth, columns)));
                   for (std::int64_t i = begin; i < end; ++i) {
                     if (i == begin || right_.strides[0] != 0)
                       kernel_.pack(right + i * right_.strides[0], right_.strides[1], right_.strides[2], depth, columns,
                                    0, panels, packed.data());
                     ProductProblem p{columns, depth, left + i * left_.strides[0], packed.data()};
                     p.left_row = left_.strides[1];
                     if (left_.strides[2] != 1 && depth > 1) {
                       in_rows.resize(static_cast<std::size_t>(rows * depth));
                       copy_rows(kernel_, p.left, p.left_row, left_.strides[2], 0, rows, depth, in_rows.data());
                       p.left = in_rows.data();
                       p.left_row = depth;
                     }
                     p.out = out + i * out_.strides[0];
                     p.out_row = out_.strides[1];
                     for (std::int64_t row = 0; row < rows; row += most_rows)
                       kernel_.run(p, row, std::min(row + most_rows, rows), 0, panels);
                   }
                 });
    return {};
  }

 private:
  const ProductKernel& kernel_;
  int threads_;
  ConcreteView left_, right_, out_;
};

/// The pixels of images, each multiplied with the weights. A thread computes some rows of an image.
class PixelsStep final : public RowBlocksStep {
 public:
  PixelsStep(int threads, ProductCall call, PackedRight right, const ConcreteView& images, std::vector<RowBlock> blocks)
      : RowBlocksStep(threads, images, std::move(blocks)),
        call_(std::move(call)),
        right_(std::move(right)),
        height_(images.sizes[2]),
        width_(images.sizes[3]) {}

 protected:
  void begin(std::byte* const* buffers) override {
    problem_ = call_.problem(buffers);
    problem_.packed = right_.at(buffers);
  }
  void compute(const RowBlock& b, std::byte*) override {
    const std::int64_t row = b.image * height_ + b.first;
    ProductProblem problem = problem_;
    problem.work = RowBlocksStep::register_work({});  // of the first image, with which the matrix begins
    right_.run(problem, row * width_, (row + b.rows) * width_, 0, right_.panels());
  }

 private:
  ProductCall call_;
  PackedRight right_;
  ProductProblem problem_;
  std::int64_t height_, width_;
};

}  // namespace

void copy_rows(const ProductKernel& kernel, const float* from, std::int64_t row, std::int64_t step, std::int64_t first,
               std::int64_t last, std::int64_t depth, float* to) {
  from += first * row;
  to += first * depth;
  if (row == 1) return kernel.transpose(from, step, last - first, depth, to, depth);
  for (std::int64_t i = 0; i < last - first; ++i)
    for (std::int64_t t = 0; t < depth; ++t) to[i * depth + t] = from[i * row + t * step];
}

const ProductKernel* product_kernel() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("x86-64-v4")) return &product_avx512;
  if (__builtin_cpu_supports("x86-64-v3")) return &product_avx2;
#endif
  return nullptr;
}

std::int64_t panels_of(const ProductKernel& kernel, std::int64_t columns) {
  return (columns + kernel.panel_columns - 1) / kernel.panel_columns;
}

bool own_products_are_faster() {
  return product_kernel() && product_kernel()->beats_library;
}

Prepared prepare_batched_product(const ExternContext& context, const ConcreteView& left, const ConcreteView& right,
                                 const ConcreteView& out) {
  for (const ConcreteView* v : {&left, &right, &out})
    if (v->dtype != DType::Float32 || v->sizes.size() != 3 || std::ranges::count(v->sizes, 0) != 0) return {};
  // Fewer rows take less time than to pack a matrix, unless that is less than to call oneDNN.
  constexpr std::int64_t least_rows = 32, small = 64 * 64;
  const bool pays = out.sizes[1] >= least_rows || right.sizes[1] * right.sizes[2] <= small;
  if (!own_products_are_faster() || !pays || out.sizes[0] < context.threads || out.strides[2] != 1) return {};
  const ProductKernel& found = *product_kernel();
  return {std::make_unique<BatchedProduct>(found, context.threads, left, right, out),
          std::string("Partita ") + found.name, false, "a kernel of its own: threads share whole products"};
}

Prepared prepare_product(const ExternContext& context, const ConcreteView& left, const ConcreteView& right,
                         const std::optional<ConcreteView>& added, const ConcreteView& out,
                         const ConcreteView* images) {
  const ProductKernel* found = product_kernel();
  const bool fixed = context.fixed(right.buffer);
  if (!found || out.sizes.size() != 2) return {};
  if (!fixed && !found->beats_library && !is_long_sum(left.sizes[1])) return {};
  const bool narrow = fixed && right.sizes.size() == 2 && narrow_type(right.dtype);
  if (left.dtype != DType::Float32 || (right.dtype != DType::Float32 && !narrow) || out.dtype != DType::Float32 ||
      !describe_right(right))
    return {};
  if (!by_rows(out) || (!by_rows(left) && fixed) || (!fixed && right.sizes.size() != 2)) return {};
  if (left.sizes[0] == 0 || left.sizes[1] == 0 || out.sizes[1] == 0 ||
      (added && (added->dtype != DType::Float32 || !by_rows(*added) || added->sizes[1] != out.sizes[1])))
    return {};
  const ProductCall call{left, right, added, out};
  Prepared prepared{nullptr, std::string("Partita ") + found->name};
  if (narrow) prepared.library += " of " + std::string(torch_name(right.dtype));
  std::unique_ptr<ProductStep> step;
  if (fixed) {
    PackedRight packed(*found, context.threads, right, weights_of(context, right.buffer));
    if (images) {
      constexpr std::int64_t second_cache = 1 << 18;  // a good part of a core's
      const std::int64_t bytes = images->sizes[2] * images->sizes[3] * (left.sizes[1] + out.sizes[1]) * 4;
      auto pixels = std::make_unique<PixelsStep>(
          context.threads, call, std::move(packed), *images,
          share_rows(images->sizes[0], images->sizes[2], 1, (bytes - 1) / second_cache + 1, context.threads));
      prepared.work = pixels->take_work(context.work, prepared.does_work);
      prepared.step = std::move(pixels);
      return prepared;
    }
    step = std::make_unique<FixedProduct>(*found, context.threads, call, std::move(packed));
  } else {
    step = std::make_unique<ChangingProduct>(*found, context.threads, call);
  }
  if (context.work) step->work = context.work->simple;
  prepared.does_work = step->work.has_value();
  prepared.step = std::move(step);
  prepared.work = prepared.does_work
                      ? "in registers"
                      : "a kernel of its own: threads share the product by columns, and the work by rows";
  return prepared;
}

}  // namespace partita::codegen
