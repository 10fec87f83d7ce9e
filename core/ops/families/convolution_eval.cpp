// Evaluates convolution and convolution_backward: im2col for each image and group, then a matrix product. A transposed
// convolution is the input gradient of a plain one; plain 1x1 kernels skip im2col.
#include <algorithm>

#include "core/ops/families/convolution.h"
#include "core/ops/families/reduce_kernels.h"
#include "core/ops/kernels/gemm.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/kernels/wrapping.h"

namespace partita {

namespace {

using namespace kernels;

/// A convolution of `in` to `out` seen as three spatial dimensions, lower ranks padded in front. For a transposed one
/// the roles are swapped: `in` is the larger side, whose patches the small side's positions see.
struct ConvolutionGeometry {
  std::int64_t batch, groups;
  std::int64_t in_channels, out_channels;  ///< of all groups
  std::int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];

  std::int64_t in_positions() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_positions() const { return out[0] * out[1] * out[2]; }
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::int64_t in_per_group() const { return in_channels / groups; }
  std::int64_t out_per_group() const { return out_channels / groups; }
  std::int64_t patch() const { return in_per_group() * taps(); }
  /// Where the planes of an image's group begin, and a group's filters.
  std::int64_t in_at(std::int64_t image, std::int64_t group) const {
    return (image * in_channels + group * in_per_group()) * in_positions();
  }
  std::int64_t out_at(std::int64_t image, std::int64_t group) const {
    return (image * out_channels + group * out_per_group()) * out_positions();
  }
  std::int64_t weight_at(std::int64_t group) const { return group * out_per_group() * patch(); }
  bool is_plain_product() const {
    for (int i = 0; i < 3; ++i)
      if (kernel[i] != 1 || stride[i] != 1 || padding[i] != 0) return false;
    return true;
  }
};

/// f(image, group)
void each_group(const ConvolutionGeometry& g, auto f) {
  for (std::int64_t n = 0; n < g.batch; ++n)
    for (std::int64_t group = 0; group < g.groups; ++group) f(n, group);
}

/// Calls f(row of the column matrix, its first column, element, count, step) for the runs of in-bounds elements: row is
/// (channel, tap), columns are output positions; `element` indexes the group's input planes.
void each_run(const ConvolutionGeometry& g, auto f) {
  std::int64_t row = 0;
  for (std::int64_t channel = 0; channel < g.in_per_group(); ++channel)
    for (std::int64_t kd = 0; kd < g.kernel[0]; ++kd)
      for (std::int64_t kh = 0; kh < g.kernel[1]; ++kh)
        for (std::int64_t kw = 0; kw < g.kernel[2]; ++kw, ++row)
          for (std::int64_t d = 0; d < g.out[0]; ++d) {
            std::int64_t id = d * g.stride[0] - g.padding[0] + kd * g.dilation[0];
            if (id < 0 || id >= g.in[0]) continue;
            for (std::int64_t h : steps(g.out[1], g.out[2])) {
              std::int64_t ih = h * g.stride[1] - g.padding[1] + kh * g.dilation[1];
              if (ih < 0 || ih >= g.in[1]) continue;
              std::int64_t first = kw * g.dilation[2] - g.padding[2];  // input column of output column 0
              std::int64_t begin = first < 0 ? (-first - 1) / g.stride[2] + 1 : 0;
              std::int64_t end = first >= g.in[2] ? 0 : std::min(g.out[2], (g.in[2] - 1 - first) / g.stride[2] + 1);
              if (begin >= end) continue;
              std::int64_t element = ((channel * g.in[0] + id) * g.in[1] + ih) * g.in[2] + first + begin * g.stride[2];
              f(row, (d * g.out[1] + h) * g.out[2] + begin, element, end - begin, g.stride[2]);
            }
          }
}

/// columns[patch, out positions] of one image's group.
template <class T>
void gather_patches(const ConvolutionGeometry& g, const T* image, T* columns) {
  std::fill_n(columns, g.patch() * g.out_positions(), T(0));
  each_run(g, [&](std::int64_t row, std::int64_t at, std::int64_t element, std::int64_t count, std::int64_t step) {
    T* to = columns + row * g.out_positions() + at;
    for (std::int64_t i = 0; i < count; ++i) to[i] = image[element + i * step];
  });
}

void fill_spatial(std::int64_t (&to)[3], const std::int64_t* from, std::size_t rank, std::int64_t neutral) {
  for (std::size_t i = 0; i < 3; ++i) to[i] = i + rank < 3 ? neutral : from[i + rank - 3];
}

Sizes spatial(const EvalCall& c, const char* name, std::size_t rank) {
  Sizes list = c.integers(name);
  if (list.size() == 1) list.resize(rank, list[0]);
  return list;
}

/// `large` and `small` are the tensors at the two ends of the sliding window.
ConvolutionGeometry geometry(const EvalCall& c, const Tensor& large, const Tensor& small, const Tensor& weight) {
  std::size_t rank = large.sizes.size() - 2;
  ConvolutionGeometry g{};
  g.batch = large.sizes[0];
  g.groups = c.integer("groups");
  g.in_channels = large.sizes[1];
  g.out_channels = small.sizes[1];
  fill_spatial(g.in, large.sizes.data() + 2, rank, 1);
  fill_spatial(g.out, small.sizes.data() + 2, rank, 1);
  fill_spatial(g.kernel, weight.sizes.data() + 2, rank, 1);
  fill_spatial(g.stride, spatial(c, "stride", rank).data(), rank, 1);
  fill_spatial(g.padding, spatial(c, "padding", rank).data(), rank, 0);
  fill_spatial(g.dilation, spatial(c, "dilation", rank).data(), rank, 1);
  return g;
}

template <class T>
void scatter_patches(const ConvolutionGeometry& g, const T* columns, T* image) {
  each_run(g, [&](std::int64_t row, std::int64_t at, std::int64_t element, std::int64_t count, std::int64_t step) {
    const T* from = columns + row * g.out_positions() + at;
    for (std::int64_t i = 0; i < count; ++i) {
      T& to = image[element + i * step];
      to = kernels::wrapping_sum(to, from[i]);
    }
  });
}

/// The three products of a convolution, for one computation dtype; sums are rounded by whom they are returned to. The
/// weight is [out_channels, patch] in memory, as PyTorch stores it (for transposed convolutions too, with the roles of
/// in and out as in ConvolutionGeometry).
template <class T>
class Convolution {
 public:
  using Sum = AccumulateType<T>;

  explicit Convolution(const ConvolutionGeometry& g) : g_(g) {}

  /// small = weight * patches(large), added to what is there if asked.
  void forward(const T* large, const T* weight, Sum* small, bool accumulate = false) {
    each_group(g_, [&](std::int64_t n, std::int64_t group) {
      const T* columns = patches(large + g_.in_at(n, group));
      gemm<T>(rows(), positions(), g_.patch(), {weight + g_.weight_at(group), g_.patch(), 1}, {columns, positions(), 1},
              small + g_.out_at(n, group), positions(), accumulate);
    });
  }

  /// large = patches^-1(weight^T * small)
  void backward_input(const T* small, const T* weight, Sum* large) {
    std::vector<Sum> columns(g_.is_plain_product() ? 0 : static_cast<std::size_t>(g_.patch() * positions()));
    each_group(g_, [&](std::int64_t n, std::int64_t group) {
      Sum* image = large + g_.in_at(n, group);
      gemm<T>(g_.patch(), positions(), rows(), {weight + g_.weight_at(group), 1, g_.patch()},
              {small + g_.out_at(n, group), positions(), 1}, g_.is_plain_product() ? image : columns.data(),
              positions());
      if (g_.is_plain_product()) return;
      std::fill_n(image, g_.in_per_group() * g_.in_positions(), Sum(0));
      scatter_patches(g_, columns.data(), image);
    });
  }

  /// weight gradient = sum over images of small * patches(large)^T
  void backward_weight(const T* large, const T* small, Sum* weight) {
    std::fill_n(weight, g_.out_channels * g_.patch(), Sum(0));
    each_group(g_, [&](std::int64_t n, std::int64_t group) {
      const T* columns = patches(large + g_.in_at(n, group));
      gemm<T>(rows(), g_.patch(), positions(), {small + g_.out_at(n, group), positions(), 1}, {columns, 1, positions()},
              weight + g_.weight_at(group), g_.patch(), true);
    });
  }

 private:
  const T* patches(const T* image) {
    if (g_.is_plain_product()) return image;
    columns_.resize(static_cast<std::size_t>(g_.patch() * positions()));
    gather_patches(g_, image, columns_.data());
    return columns_.data();
  }
  std::int64_t rows() const { return g_.out_per_group(); }
  std::int64_t positions() const { return g_.out_positions(); }

  const ConvolutionGeometry& g_;
  std::vector<T> columns_;
};

/// y += the bias of its channel.
template <class T>
void add_bias(const Tensor& y, const Tensor& bias) {
  DimSplit split = split_at(y.sizes, 1);
  for (std::int64_t n = 0; n < split.outer; ++n)
    for (std::int64_t k = 0; k < split.length; ++k) {
      T* plane = y.as<T>() + (n * split.length + k) * split.inner;
      for (std::int64_t i = 0; i < split.inner; ++i) plane[i] = kernels::wrapping_sum(plane[i], bias.as<T>()[k]);
    }
}

}  // namespace

Value eval_convolution(EvalCall& c) {
  const DType dtype = evaluation_dtype(c.tensor("input").dtype), sum = accumulate_dtype(dtype);
  Tensor x = load(c.tensor("input"), dtype), w = load(c.tensor("weight"), dtype), bias = load_optional(c, "bias", sum);
  Tensor y = zeros_for(c, fake_convolution, sum);
  bool transposed = c.boolean("transposed");
  ConvolutionGeometry g = transposed ? geometry(c, y, x, w) : geometry(c, x, y, w);
  dispatch_compute(dtype, "convolution", [&]<class T>() {
    Convolution<T> convolution(g);
    auto* to = y.as<AccumulateType<T>>();
    if (transposed)
      convolution.backward_input(x.as<T>(), w.as<T>(), to);
    else
      convolution.forward(x.as<T>(), w.as<T>(), to);
    if (bias.storage) add_bias<AccumulateType<T>>(y, bias);
  });
  return y;
}

Value eval_convolution_backward(EvalCall& c) {
  const std::vector<bool> wanted = c.booleans("output_mask");
  const DType dtype = evaluation_dtype(c.tensor("input").dtype), sum = accumulate_dtype(dtype);
  Tensor x = load(c.tensor("input"), dtype), w = load(c.tensor("weight"), dtype),
         gy = load(c.tensor("grad_output"), dtype);
  bool transposed = c.boolean("transposed");
  ConvolutionGeometry g = transposed ? geometry(c, gy, x, w) : geometry(c, x, gy, w);
  ValueList results(3);
  auto conjugated = [](Tensor t) { return is_complex(t.dtype) ? unwrap(t.clone()) : t; };
  dispatch_compute(dtype, "convolution_backward", [&]<class T>() {
    using Sum = AccumulateType<T>;
    Convolution<T> convolution(g);
    // Gradients of complex products take conjugates of the operands.
    Tensor xc = conjugated(x), wc = conjugated(w);
    if constexpr (!std::is_arithmetic_v<T>)
      for (Tensor* t : {&xc, &wc})
        for (std::int64_t i = 0; i < t->numel(); ++i) t->as<T>()[i] = std::conj(t->as<T>()[i]);
    if (wanted[0]) {
      Tensor dx = empty(sum, x.sizes);
      if (transposed)
        convolution.forward(gy.as<T>(), wc.as<T>(), dx.as<Sum>());
      else
        convolution.backward_input(gy.as<T>(), wc.as<T>(), dx.as<Sum>());
      results[0] = dx;
    }
    if (wanted[1]) {
      Tensor dw = empty(sum, w.sizes);
      const Tensor &large = transposed ? gy : xc, &small = transposed ? xc : gy;
      convolution.backward_weight(large.as<T>(), small.as<T>(), dw.as<Sum>());
      results[1] = dw;
    }
    if (wanted[2]) {
      const DimSplit split = split_at(gy.sizes, 1);
      Tensor db = zeros(sum, {split.length});
      for (std::int64_t i : steps(gy.numel()))
        db.as<Sum>()[i / split.inner % split.length] += static_cast<Sum>(gy.as<T>()[i]);
      results[2] = db;
    }
  });
  return results;
}

}  // namespace partita
