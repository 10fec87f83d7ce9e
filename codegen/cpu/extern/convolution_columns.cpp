// Convolutions by im2col. The forward gathers windows and multiplies, the gradient by the input multiplies and
// scatters, that by the weight multiplies by gathered windows. The products are oneDNN's.
#include "codegen/cpu/extern/convolution_columns.h"

#include <algorithm>

#include "codegen/cpu/extern/direct.h"
#include "codegen/cpu/extern/direct_kernel.h"
#include "core/base/threads.h"
#include "core/tensor/tensor.h"

namespace partita::codegen {
namespace {

using dnnl::memory;

/// The windows of an image's pixels, whose channels are adjacent, as rows of a matrix [pixels of the result, taps *
/// channels].
struct Columns : DirectProblem {
  std::int64_t images = 0, channels = 0, image_stride = 0;
  std::int64_t tap_step = 0, channel_step = 0;  ///< in a row of the matrix
  int threads = 1;

  std::int64_t taps() const { return window_height * window_width; }
  std::int64_t rows() const { return images * out_height * out_width; }
  std::int64_t length() const { return taps() * channels; }

  /// Row and column of the image that a tap reads for a pixel of the result; false: beside the image.
  bool place(std::int64_t y, std::int64_t x, std::int64_t tap, std::int64_t& row, std::int64_t& column) const {
    row = y * stride_y - top + tap / window_width * dilation_y;
    column = x * stride_x - left + tap % window_width * dilation_x;
    return row >= 0 && row < height && column >= 0 && column < width;
  }

  void gather(const float* image, float* matrix) const {
    parallel_for(threads, rows(), 1, 1, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t p = first; p < last; ++p) {
        const std::int64_t n = p / (out_height * out_width), y = p / out_width % out_height, x = p % out_width;
        for (std::int64_t tap = 0; tap < taps(); ++tap) {
          std::int64_t row, column;
          const bool within = place(y, x, tap, row, column);
          const float* from = image + n * image_stride + row * in_row + column * in_pixel;
          float* to = matrix + p * length() + tap * tap_step;
          for (std::int64_t c = 0; c < channels; ++c) to[c * channel_step] = within ? from[c] : 0;
        }
      }
    });
  }

  /// The sums of what the matrix has for each pixel of the image, in the order of taps.
  void scatter(const float* matrix, float* image) const {
    parallel_for(threads, images * height, 1, 1, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t r = first; r < last; ++r)
        for (std::int64_t column = 0; column < width; ++column) {
          const std::int64_t n = r / height, row = r % height;
          float* to = image + n * image_stride + row * in_row + column * in_pixel;
          std::fill_n(to, channels, 0.0F);
          for (std::int64_t tap = 0; tap < taps(); ++tap) {
            const std::int64_t y = row + top - tap / window_width * dilation_y;
            const std::int64_t x = column + left - tap % window_width * dilation_x;
            if (y < 0 || x < 0 || y % stride_y != 0 || x % stride_x != 0) continue;
            if (y / stride_y >= out_height || x / stride_x >= out_width) continue;
            const std::int64_t p = (n * out_height + y / stride_y) * out_width + x / stride_x;
            const float* from = matrix + p * length() + tap * tap_step;
            for (std::int64_t c = 0; c < channels; ++c) to[c] += from[c * channel_step];
          }
        }
    });
  }
};

/// Null where it does not pay. `weight`: [out, in, height, width]; the matrix has its rows' order.
std::optional<Columns> columns_of(const ExternContext& context, const ConvolutionArguments& g,
                                  const ConcreteView& image, const ConcreteView& weight, const ConcreteView& result) {
  for (const ConcreteView* v : {&image, &weight, &result})
    if (v->sizes.size() != 4 || v->dtype != DType::Float32 || std::ranges::find(v->sizes, 0) != v->sizes.end())
      return std::nullopt;
  if (g.groups != 1 || (image.sizes[1] > 1 && image.strides[1] != 1)) return std::nullopt;
  Columns c{problem_of(g, image, weight, result)};
  c.images = image.sizes[0];
  c.channels = image.sizes[1];
  c.image_stride = image.strides[0];
  c.threads = context.threads;
  // A row of the weights, [in, height, width] or [height, width, in] in memory, without gaps.
  const Sizes& s = weight.strides;
  if (s[0] != c.length() || s[2] != s[3] * c.window_width) return std::nullopt;
  if (!(s[3] == 1 && s[1] == c.taps()) && !(s[1] == 1 && s[3] == c.channels)) return std::nullopt;
  c.tap_step = s[3];
  c.channel_step = s[1];
  // Where the weights are not much larger than the images, blocks of images are worth an order of the weights' own.
  if (weight.sizes[0] * c.length() < 10 * c.rows() * (c.channels + weight.sizes[0])) return std::nullopt;
  return c;
}

memory::desc matrix_desc(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column) {
  return memory::desc({rows, columns}, memory::data_type::f32, memory::dims{row, column});
}

/// A product of matrices in memory that is not the plan's.
class Product {
 public:
  Product(const memory::desc& left, const memory::desc& right, const memory::desc& out)
      : pd_(dnnl::matmul::desc(left, right, out), cpu_engine()), primitive_(pd_) {}
  const char* name() const { return pd_.impl_info_str(); }

  void run(const float* left, const float* right, float* out) {
    const auto at = [](const memory::desc& desc, const float* data) {
      return memory(desc, cpu_engine(), const_cast<float*>(data));
    };
    primitive_.execute(stream_, {{DNNL_ARG_SRC, at(pd_.src_desc(), left)},
                                 {DNNL_ARG_WEIGHTS, at(pd_.weights_desc(), right)},
                                 {DNNL_ARG_DST, at(pd_.dst_desc(), out)}});
  }

 private:
  dnnl::matmul::primitive_desc pd_;
  dnnl::matmul primitive_;
  dnnl::stream stream_{cpu_engine()};
};

enum class Makes { Result, Input, Weight };

class ColumnsStep final : public ExternStep {
 public:
  ColumnsStep(Makes makes, Columns columns, ConcreteView a, ConcreteView b, ConcreteView out, Product product)
      : makes_(makes),
        columns_(columns),
        a_(std::move(a)),
        b_(std::move(b)),
        out_(std::move(out)),
        product_(std::move(product)) {}
  const char* name() const { return product_.name(); }
  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(columns_.rows() * columns_.length()) * sizeof(float);
  }

  Status run(std::byte* const* buffers) override {
    OnednnThreads limit(columns_.threads);
    const auto* a = reinterpret_cast<const float*>(a_.at(buffers));
    const auto* b = reinterpret_cast<const float*>(b_.at(buffers));
    auto* out = reinterpret_cast<float*>(out_.at(buffers));
    TRY(const std::shared_ptr<Storage> scratch, Storage::allocate(scratch_bytes()));
    auto* matrix = reinterpret_cast<float*>(scratch->data());
    switch (makes_) {
      case Makes::Result:  // of the input and the weight
        columns_.gather(a, matrix);
        product_.run(matrix, b, out);
        break;
      case Makes::Input:  // of the gradient and the weight
        product_.run(a, b, matrix);
        columns_.scatter(matrix, out);
        break;
      case Makes::Weight:  // of the gradient and the input
        columns_.gather(b, matrix);
        product_.run(a, matrix, out);
        break;
    }
    return {};
  }

 private:
  Makes makes_;
  Columns columns_;
  ConcreteView a_, b_, out_;
  Product product_;
};

/// `pixels`: the result, or its gradient, of which a pixel is a row.
Prepared prepare(Makes makes, const Columns& c, const ConcreteView& a, const ConcreteView& b, const ConcreteView& out,
                 const ConcreteView& pixels) {
  const auto rows = matrix_of(pixels);
  if (!rows || rows->strides[1] != 1 || rows->strides[0] < rows->sizes[1]) return {};
  const std::int64_t n = c.rows(), k = c.length(), filters = rows->sizes[1], row = rows->strides[0];
  const memory::desc columns = matrix_desc(n, k, k, 1), flat = matrix_desc(n, filters, row, 1);
  auto product = makes == Makes::Result ? Product(columns, matrix_desc(k, filters, 1, k), flat)
                 : makes == Makes::Input
                     ? Product(flat, matrix_desc(filters, k, k, 1), columns)
                     : Product(matrix_desc(filters, n, 1, row), columns, matrix_desc(filters, k, k, 1));
  if (std::string_view(product.name()).starts_with("ref")) return {};
  auto step = std::make_unique<ColumnsStep>(makes, c, a, b, out, std::move(product));
  const std::string library = std::string("oneDNN ") + step->name() + " of windows";
  return {std::move(step), library};
}

}  // namespace

Prepared prepare_columns(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& input,
                         const ConcreteView& weight, const std::optional<ConcreteView>& bias, const ConcreteView& out) {
  const auto c = columns_of(context, g, input, weight, out);
  if (!c || bias || context.fixed(weight.buffer)) return {};
  Prepared prepared = prepare(Makes::Result, *c, input, weight, out, out);
  prepared.work = "a kernel of its own: the result is made as a whole";
  return prepared;
}

Prepared prepare_columns_to_input(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& grad,
                                  const ConcreteView& weight, const ConcreteView& result) {
  const auto c = columns_of(context, g, result, weight, grad);
  return c ? prepare(Makes::Input, *c, grad, weight, result, grad) : Prepared();
}

Prepared prepare_columns_to_weight(const ExternContext& context, const ConvolutionArguments& g,
                                   const ConcreteView& grad, const ConcreteView& input, const ConcreteView& result) {
  const auto c = columns_of(context, g, input, result, grad);
  return c ? prepare(Makes::Weight, *c, grad, input, result, grad) : Prepared();
}

}  // namespace partita::codegen
