#include <algorithm>
#include <utility>

#include "core/ops/families/convolution.h"
#include "core/ops/families/convolution_onednn.h"
#include "core/ops/families/reduce_kernels.h"
#include "core/ops/kernels/gemm.h"
#include "core/ops/kernels/outputs.h"

namespace partita {

namespace {

using namespace kernels;

void fill_spatial(std::int64_t (&to)[3], const std::int64_t* from, std::size_t rank, std::int64_t neutral) {
  for (std::size_t i = 0; i < 3; ++i) to[i] = i + rank < 3 ? neutral : from[i + rank - 3];
}

Sizes spatial(const EvalCall& c, const char* name, std::size_t rank) {
  Sizes list = c.integers(name);
  if (list.size() == 1) list.resize(rank, list[0]);
  return list;
}

/// `large` and `small` are the tensors at the two ends of the sliding window.
Geometry geometry(const EvalCall& c, const Tensor& large, const Tensor& small, const Tensor& weight) {
  std::size_t rank = large.sizes.size() - 2;
  Geometry g{};
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
void scatter_patches(const Geometry& g, const T* columns, T* image) {
  each_run(g, [&](std::int64_t row, std::int64_t at, std::int64_t element, std::int64_t count, std::int64_t step) {
    const T* from = columns + row * g.out_positions() + at;
    for (std::int64_t i = 0; i < count; ++i) image[element + i * step] += from[i];
  });
}

/// The three products of a convolution, for one computation dtype. The weight is [out_channels, patch] in memory, as
/// PyTorch stores it (for transposed convolutions too, with the roles of in and out as in Geometry).
template <class T>
class Convolution {
 public:
  explicit Convolution(const Geometry& g) : g_(g) {}

  /// small = weight * patches(large), added to what is there if asked.
  void forward(const T* large, const T* weight, T* small, bool accumulate = false) {
    each_group(g_, [&](std::int64_t n, std::int64_t group) {
      const T* columns = patches(large + g_.in_at(n, group));
      gemm<T>(rows(), positions(), g_.patch(), {weight + g_.weight_at(group), g_.patch(), 1}, {columns, positions(), 1},
              small + g_.out_at(n, group), positions(), accumulate);
    });
  }

  /// large = patches^-1(weight^T * small); the patches are rounded to `patch_dtype` before they are summed.
  void backward_input(const T* small, const T* weight, T* large, DType patch_dtype = DType::Float64) {
    each_group(g_, [&](std::int64_t n, std::int64_t group) {
      T* image = large + g_.in_at(n, group);
      T* columns = g_.is_plain_product() ? image : this->columns();
      gemm<T>(g_.patch(), positions(), rows(), {weight + g_.weight_at(group), 1, g_.patch()},
              {small + g_.out_at(n, group), positions(), 1}, columns, positions());
      if (!g_.is_plain_product()) {
        for (std::int64_t i = 0; i < g_.patch() * positions(); ++i) columns[i] = rounded(patch_dtype, columns[i]);
        std::fill_n(image, g_.in_per_group() * g_.in_positions(), T(0));
        scatter_patches(g_, columns, image);
      }
    });
  }

  /// weight gradient = sum over images of small * patches(large)^T
  void backward_weight(const T* large, const T* small, T* weight) {
    std::fill_n(weight, g_.out_channels * g_.patch(), T(0));
    each_group(g_, [&](std::int64_t n, std::int64_t group) {
      const T* columns = patches(large + g_.in_at(n, group));
      gemm<T>(rows(), g_.patch(), positions(), {small + g_.out_at(n, group), positions(), 1}, {columns, 1, positions()},
              weight + g_.weight_at(group), g_.patch(), true);
    });
  }

 private:
  T* columns() {
    columns_.resize(static_cast<std::size_t>(g_.patch() * positions()));
    return columns_.data();
  }
  const T* patches(const T* image) {
    if (g_.is_plain_product()) return image;
    gather_patches(g_, image, columns());
    return columns_.data();
  }
  std::int64_t rows() const { return g_.out_per_group(); }
  std::int64_t positions() const { return g_.out_positions(); }

  const Geometry& g_;
  std::vector<T> columns_;
};

/// Does PyTorch give it to oneDNN, with one thread? (ConvParams::use_mkldnn in native/Convolution.cpp; its float16
/// kernels ask for instructions that few processors have.)
bool uses_onednn(const EvalCall& c, const Tensor& input, const Tensor& weight) {
  const std::size_t rank = input.sizes.size() - 2;
  const std::int64_t groups = c.integer("groups"), batch = input.sizes[0], channels = input.sizes[1];
  const Sizes stride = spatial(c, "stride", rank), dilation = spatial(c, "dilation", rank),
              output_padding = spatial(c, "output_padding", rank);
  const bool transposed = c.boolean("transposed");
  for (std::size_t i = 0; i < rank; ++i)
    if (transposed && output_padding[i] >= stride[i]) return false;
  if (input.dtype != DType::Float32) return input.dtype == DType::BFloat16;
  if (transposed && groups > 1 && channels == groups) return false;
  auto above = [](const Sizes& list) { return std::ranges::any_of(list, [](std::int64_t v) { return v > 1; }); };
  // A single dimension is seen as the second of two.
  const std::int64_t width = weight.sizes.back(), height = rank > 1 ? weight.sizes[rank] : 1;
  const std::int64_t plane = rank > 1 ? input.sizes[2] * input.sizes[3] : input.sizes[2];
  return (above(stride) || above(dilation) || batch >= 16 || width != 1 || height != 1) &&
         (groups > 1 || (width > 3 && height > 3) || batch > 1 || batch * channels * plane > 20480);
}

/// Of its kernels those for groups of several channels are not followed.
bool adds_as_onednn(const EvalCall& c, const Tensor& input, const Tensor& weight) {
  const std::int64_t groups = c.integer("groups");
  const bool by_channel = weight.sizes[0] == groups && weight.sizes[1] == 1;
  return input.dtype == DType::Float32 && (groups == 1 || by_channel) && uses_onednn(c, input, weight);
}

/// f(plane, channel's bias) for every plane of y.
template <class T, class F>
void each_biased(const Tensor& y, const Tensor& bias, F f) {
  DimSplit split = split_at(y.sizes, 1);
  for (std::int64_t n = 0; n < split.outer; ++n)
    for (std::int64_t k = 0; k < split.length; ++k) {
      T* plane = y.as<T>() + (n * split.length + k) * split.inner;
      for (std::int64_t i = 0; i < split.inner; ++i) plane[i] = f(plane[i], bias.as<T>()[k]);
    }
}

/// The sums of each channel of y over images and positions, in `Sum`; by image, sums of images are added up.
template <class T, class Sum>
void sum_planes(const Tensor& y, const Tensor& out, bool by_image) {
  const DimSplit split = split_at(y.sizes, 1);
  for (std::int64_t k = 0; k < split.length; ++k) {
    Sum total(0), sum(0);
    for (std::int64_t n = 0; n < split.outer; ++n) {
      const T* plane = y.as<T>() + (n * split.length + k) * split.inner;
      for (std::int64_t i = 0; i < split.inner; ++i) sum += static_cast<Sum>(plane[i]);
      if (by_image) total += std::exchange(sum, Sum(0));
    }
    out.as<T>()[k] = static_cast<T>(total + sum);
  }
}

}  // namespace

Value eval_convolution(EvalCall& c) {
  Tensor out = allocate(c, fake_convolution);
  const Tensor& input = c.tensor("input");
  DType dtype = arithmetic_dtype(input.dtype);
  Tensor x = load(input, dtype), w = load(c.tensor("weight"), dtype), bias = load_optional(c, "bias", dtype);
  Tensor y = empty(dtype, out.sizes);
  bool transposed = c.boolean("transposed");
  Geometry g = transposed ? geometry(c, y, x, w) : geometry(c, x, y, w);
  if (adds_as_onednn(c, input, w)) {
    const float *image = x.as<float>(), *filter = w.as<float>();
    if (transposed) {
      onednn::backward_input(g, image, filter, y.as<float>());
      if (bias.storage) each_biased<float>(y, bias, [](float v, float shift) { return v + shift; });
    } else {
      onednn::forward(g, image, filter, bias.storage ? bias.as<float>() : nullptr, y.as<float>());
    }
    out.copy_from(y);
    return out;
  }
  dispatch_compute(dtype, "convolution", [&]<class T>() {
    Convolution<T> convolution(g);
    if (!transposed) {  // products are summed onto the bias
      if (bias.storage) each_biased<T>(y, bias, [](T, T shift) { return shift; });
      convolution.forward(x.as<T>(), w.as<T>(), y.as<T>(), bias.storage != nullptr);
      return;
    }
    // PyTorch's own loops round the patches of half types, their sums and the bias one by one
    // (native/NaiveConvolutionTranspose2d.cpp).
    const DType kept = uses_onednn(c, input, w) ? dtype : input.dtype;
    convolution.backward_input(x.as<T>(), w.as<T>(), y.as<T>(), kept);
    if (bias.storage) each_biased<T>(y, bias, [&](T v, T shift) { return rounded(kept, v) + shift; });
  });
  out.copy_from(y);
  return out;
}

Value eval_convolution_backward(EvalCall& c) {
  std::vector<Tensor> outputs = allocate_all(c, fake_convolution_backward);
  const Tensor& input = c.tensor("input");
  DType dtype = arithmetic_dtype(input.dtype);
  Tensor x = load(input, dtype), w = load(c.tensor("weight"), dtype), gy = load(c.tensor("grad_output"), dtype);
  bool transposed = c.boolean("transposed");
  Geometry g = transposed ? geometry(c, gy, x, w) : geometry(c, x, gy, w);
  ValueList results(3);
  auto store = [&](std::size_t i, const Tensor& computed) {
    outputs[i].copy_from(computed);
    results[i] = outputs[i];
  };
  auto conjugated = [](Tensor t) { return is_complex(t.dtype) ? unwrap(t.clone()) : t; };
  const bool chained = adds_as_onednn(c, input, w);
  const bool by_planes = x.dim() == 5 && std::ranges::any_of(g.dilation, [](std::int64_t d) { return d > 1; });
  dispatch_compute(dtype, "convolution_backward", [&]<class T>() {
    Convolution<T> convolution(g);
    // Gradients of complex products take conjugates of the operands.
    Tensor xc = conjugated(x), wc = conjugated(w);
    if constexpr (!std::is_arithmetic_v<T>)
      for (Tensor* t : {&xc, &wc})
        for (std::int64_t i = 0; i < t->numel(); ++i) t->as<T>()[i] = std::conj(t->as<T>()[i]);
    if (outputs[0].storage) {
      Tensor dx = empty(dtype, x.sizes);
      if (chained && transposed)
        onednn::forward(g, gy.as<float>(), w.as<float>(), nullptr, dx.as<float>());
      else if (chained)
        onednn::backward_input(g, gy.as<float>(), w.as<float>(), dx.as<float>());
      else if (transposed)
        convolution.forward(gy.as<T>(), wc.as<T>(), dx.as<T>());
      else
        convolution.backward_input(gy.as<T>(), wc.as<T>(), dx.as<T>());
      store(0, dx);
    }
    if (outputs[1].storage) {
      Tensor dw = empty(dtype, w.sizes);
      const Tensor &large = transposed ? gy : xc, &small = transposed ? xc : gy;
      if (chained && by_planes) {  // sums of sums of lanes, whose order is not followed: rounded once
        const Tensor wide = empty(DType::Float64, w.sizes);
        Convolution<double>(g).backward_weight(load(large, DType::Float64).as<double>(),
                                               load(small, DType::Float64).as<double>(), wide.as<double>());
        dw.copy_from(wide);
      } else if (chained)
        onednn::backward_weight(g, large.as<float>(), small.as<float>(), dw.as<float>());
      else
        convolution.backward_weight(large.as<T>(), small.as<T>(), dw.as<T>());
      store(1, dw);
    }
    if (outputs[2].storage) {
      Tensor db = empty(dtype, {gy.sizes[1]});
      if (chained)
        sum_planes<T, T>(gy, db, transposed);
      else
        sum_planes<T, Accumulator<T>>(gy, db, false);
      store(2, db);
    }
  });
  return results;
}

}  // namespace partita
