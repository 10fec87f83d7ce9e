// Products of groups with a matrix each, by the kernel of our own products. The groups are known when it runs.
#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "codegen/cpu/extern/product.h"
#include "codegen/cpu/extern/product_kernel.h"
#include "core/base/threads.h"
#include "core/tensor/tensor.h"

namespace partita::codegen {
namespace {

using dnnl::memory;

/// A matrix of a batch, or one of two dimensions.
struct Matrix {
  const float* data;
  std::int64_t row, column;

  Matrix(const ConcreteView& v, std::byte* const* buffers, std::int64_t i)
      : data(reinterpret_cast<const float*>(v.at(buffers)) + (v.sizes.size() == 3 ? i * v.strides[0] : 0)),
        row(v.strides[v.strides.size() - 2]),
        column(v.strides.back()) {}
};

class GroupedProduct final : public ExternStep {
 public:
  GroupedProduct(const ProductKernel& kernel, const ExternContext& context, ConcreteView left, ConcreteView right,
                 ConcreteView ends, ConcreteView out)
      : kernel_(kernel),
        threads_(context.threads),
        left_(std::move(left)),
        right_(std::move(right)),
        ends_(std::move(ends)),
        out_(std::move(out)),
        weights_(right_.sizes.size() == 3 ? weights_of(context, right_.buffer) : nullptr) {}

  Status run(std::byte* const* buffers) override {
    TRY(const Sizes ends, ends_of(buffers));
    const bool left_flat = left_.sizes.size() == 2, right_flat = right_.sizes.size() == 2;
    auto* const out = reinterpret_cast<float*>(out_.at(buffers));
    const std::int64_t out_row = out_.strides[out_.strides.size() - 2];
    if (left_flat && !right_flat)
      for (std::int64_t r = ends.back(); r < out_.sizes[0]; ++r) std::fill_n(out + r * out_row, out_.sizes[1], 0.0F);
    else if (!left_flat && right_flat)
      for (std::int64_t r = 0; r < out_.sizes[0]; ++r)
        std::fill(out + r * out_row + ends.back(), out + r * out_row + out_.sizes[1], 0.0F);
    const float* const packed = weights_ ? packed_weights(buffers) : nullptr;
    // Groups have different sizes, so threads take one part after another.
    const std::int64_t groups = std::ssize(ends), parts = right_flat && !left_flat ? 1 : threads_;
    std::atomic<std::int64_t> next = 0;
    parallel_for(threads_, threads_, 1, 1, [&](std::int64_t, std::int64_t, int) {
      for (std::int64_t task; (task = next++) < groups * parts;) {
        const std::int64_t i = task / parts, begin = i == 0 ? 0 : ends[static_cast<std::size_t>(i - 1)];
        const std::int64_t size = ends[static_cast<std::size_t>(i)] - begin;
        Matrix a(left_, buffers, i), b(right_, buffers, i);
        ProductProblem p{right_.sizes.back(), left_.sizes.back()};
        std::int64_t rows = left_.sizes[left_.sizes.size() - 2];
        p.out_row = out_row;
        p.out = out + (out_.sizes.size() == 3 ? i * out_.strides[0] : 0);
        if (left_flat && right_flat) {
          a.data += begin * a.column, b.data += begin * b.row;
          p.depth = size;
        } else if (left_flat) {
          a.data += begin * a.row, p.out += begin * out_row;
          rows = size;
        } else {
          b.data += begin * b.column, p.out += begin;
          p.columns = size;
        }
        const std::int64_t panels = panels_of(kernel_, p.columns);
        product(p, a, b, packed ? packed + i * elements() : nullptr, rows, panels * (task % parts) / parts,
                panels * (task % parts + 1) / parts);
      }
    });
    return {};
  }

 private:
  std::int64_t elements() const { return kernel_.packed_elements(right_.sizes[1], right_.sizes[2]); }

  /// Where groups end, as evaluation checks it.
  Result<Sizes> ends_of(std::byte* const* buffers) const {
    const bool left_flat = left_.sizes.size() == 2;
    const std::int64_t most = !left_flat ? right_.sizes[1] : right_.sizes.size() == 2 ? left_.sizes[1] : left_.sizes[0];
    Sizes ends;
    std::int64_t before = 0;
    for (std::int64_t i = 0; i < ends_.sizes[0]; ++i) {
      const std::byte* at = ends_.at(buffers);
      const std::int64_t end = ends_.dtype == DType::Int32
                                   ? reinterpret_cast<const std::int32_t*>(at)[i * ends_.strides[0]]
                                   : reinterpret_cast<const std::int64_t*>(at)[i * ends_.strides[0]];
      if (end < before || end > most)
        return input_error(
            "ops.arguments",
            fmt::format("grouped_mm: offs must not decrease or pass {}, but has {} at {}", most, end, i));
      ends.push_back(before = end);
    }
    return ends;
  }

  /// Of weights that are the same in every run.
  const float* packed_weights(std::byte* const* buffers) {
    std::byte* const at = right_.at(buffers);
    if (at == packed_from_) return static_cast<const float*>(packed_->get_data_handle());
    packed_from_ = at;
    const memory plain(*describe(right_), cpu_engine(), at);
    // As many dimensions as no other kernel's packed weights have: kept ones are found by their descriptor.
    const memory::desc wanted({1, 1, right_.sizes[0], elements()}, memory::data_type::f32, memory::format_tag::abcd);
    packed_ = weights_->packed(plain, wanted, [&](memory& made) {
      auto* const to = static_cast<float*>(made.get_data_handle());
      parallel_for(threads_, right_.sizes[0], 1, 1, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t i = first; i < last; ++i) {
          const Matrix b(right_, buffers, i);
          kernel_.pack(b.data, b.row, b.column, right_.sizes[1], right_.sizes[2], 0,
                       panels_of(kernel_, right_.sizes[2]), to + i * elements());
        }
      });
    });
    return static_cast<const float*>(packed_->get_data_handle());
  }

  /// Panels [first, last) of a product.
  void product(ProductProblem p, const Matrix& a, const Matrix& b, const float* packed, std::int64_t rows,
               std::int64_t first, std::int64_t last) const {
    if (rows == 0 || first == last) return;
    const std::int64_t column = first * kernel_.panel_columns;
    if (p.depth == 0) {
      const std::int64_t n = std::min(last * kernel_.panel_columns, p.columns) - column;
      for (std::int64_t r = 0; r < rows; ++r) std::fill_n(p.out + r * p.out_row + column, n, 0.0F);
      return;
    }
    static thread_local std::vector<float> in_rows, own;
    p.packed = packed;
    if (!packed) {
      own.resize(static_cast<std::size_t>(kernel_.packed_elements(p.depth, p.columns)));
      kernel_.pack(b.data, b.row, b.column, p.depth, p.columns, first, last, own.data());
      p.packed = own.data();
    }
    p.left = a.data;
    p.left_row = a.row;
    if (a.column != 1 && p.depth > 1) {
      in_rows.resize(static_cast<std::size_t>(rows * p.depth));
      copy_rows(kernel_, a.data, a.row, a.column, 0, rows, p.depth, in_rows.data());
      p.left = in_rows.data();
      p.left_row = p.depth;
    }
    for (std::int64_t row = 0; row < rows; row += most_rows)
      kernel_.run(p, row, std::min(row + most_rows, rows), first, last);
  }

  const ProductKernel& kernel_;
  int threads_;
  ConcreteView left_, right_, ends_, out_;
  std::shared_ptr<PackedWeights> weights_;  ///< null: they change
  std::shared_ptr<memory> packed_;
  const void* packed_from_ = nullptr;
};

}  // namespace

Prepared prepare_grouped_product(const ExternContext& context, std::string& why_not) {
  const auto refused = [&](std::string why) {
    why_not = std::move(why);
    return Prepared();
  };
  const auto left = context.view(0), right = context.view(1), ends = context.view(2);
  const auto out = concrete_view(context.call.results[0]);
  if (!left || !right || !out) return refused("symbolic sizes");
  if (!ends || ends->sizes.size() != 1 || (ends->dtype != DType::Int32 && ends->dtype != DType::Int64))
    return refused("groups by other numbers");
  for (const ConcreteView* v : {&*left, &*right, &*out})
    if (v->dtype != DType::Float32 || std::ranges::count(v->sizes, 0) != 0) return refused("a dtype or size");
  const ProductKernel* const kernel = product_kernel();
  if (!kernel || out->strides.back() != 1 || ends->sizes[0] == 0) return refused("no kernel for it");
  if (context.fixed(right->buffer) && right->sizes.size() == 3 && !describe(*right))
    return refused("weights that overlap");
  return {std::make_unique<GroupedProduct>(*kernel, context, *left, *right, *ends, *out),
          std::string("Partita ") + kernel->name};
}

}  // namespace partita::codegen
