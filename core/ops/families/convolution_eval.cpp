#include <algorithm>

#include "core/ops/families/convolution.h"
#include "core/ops/kernels/gemm.h"
#include "core/ops/kernels/outputs.h"

namespace partita {

namespace {

using namespace kernels;

/// A convolution of `in` to `out` seen as three spatial dimensions, lower ranks padded in front. For a transposed one
/// the roles are swapped: `in` is the larger side, whose patches the small side's positions see.
struct Geometry {
  std::int64_t batch, groups;
  std::int64_t in_channels, out_channels;  ///< of all groups
  std::int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];

  std::int64_t in_positions() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_positions() const { return out[0] * out[1] * out[2]; }
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::int64_t in_per_group() const { return in_channels / groups; }
  std::int64_t out_per_group() const { return out_channels / groups; }
  std::int64_t patch() const { return in_per_group() * taps(); }
  bool is_plain_product() const {
    for (int i = 0; i < 3; ++i)
      if (kernel[i] != 1 || stride[i] != 1 || padding[i] != 0) return false;
    return true;
  }
};

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

/// Calls f(row of the column matrix, its first column, element, count, step) for the runs of in-bounds elements: row is
/// (channel, tap), columns are output positions; `element` indexes the group's input planes.
template <class F>
void each_run(const Geometry& g, F f) {
  std::int64_t row = 0;
  for (std::int64_t channel = 0; channel < g.in_per_group(); ++channel)
    for (std::int64_t kd = 0; kd < g.kernel[0]; ++kd)
      for (std::int64_t kh = 0; kh < g.kernel[1]; ++kh)
        for (std::int64_t kw = 0; kw < g.kernel[2]; ++kw, ++row)
          for (std::int64_t d = 0; d < g.out[0]; ++d) {
            std::int64_t id = d * g.stride[0] - g.padding[0] + kd * g.dilation[0];
            if (id < 0 || id >= g.in[0]) continue;
            for (std::int64_t h = 0; h < g.out[1]; ++h) {
              std::int64_t ih = h * g.stride[1] - g.padding[1] + kh * g.dilation[1];
              if (ih < 0 || ih >= g.in[1]) continue;
              std::int64_t first = kw * g.dilation[2] - g.padding[2];  // input column of output column 0
              std::int64_t begin = first < 0 ? (-first + g.stride[2] - 1) / g.stride[2] : 0;
              std::int64_t end = first >= g.in[2] ? 0 : std::min(g.out[2], (g.in[2] - 1 - first) / g.stride[2] + 1);
              if (begin >= end) continue;
              std::int64_t element = ((channel * g.in[0] + id) * g.in[1] + ih) * g.in[2] + first + begin * g.stride[2];
              f(row, (d * g.out[1] + h) * g.out[2] + begin, element, end - begin, g.stride[2]);
            }
          }
}

template <class T>
void gather_patches(const Geometry& g, const T* image, T* columns) {
  std::fill_n(columns, g.patch() * g.out_positions(), T(0));
  each_run(g, [&](std::int64_t row, std::int64_t at, std::int64_t element, std::int64_t count, std::int64_t step) {
    T* to = columns + row * g.out_positions() + at;
    for (std::int64_t i = 0; i < count; ++i) to[i] = image[element + i * step];
  });
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
  explicit Convolution(const Geometry& g) : g_(g) {
    if (!g.is_plain_product()) columns_.resize(static_cast<std::size_t>(g.patch() * g.out_positions()));
  }

  /// small = weight * patches(large), added to what is there if asked.
  void forward(const T* large, const T* weight, T* small, bool accumulate = false) {
    each([&](std::int64_t n, std::int64_t group) {
      const T* columns = patches(large + in_at(n, group));
      gemm<T>(rows(), positions(), g_.patch(), {weight + weight_at(group), g_.patch(), 1}, {columns, positions(), 1},
              small + out_at(n, group), positions(), accumulate);
    });
  }

  /// large = patches^-1(weight^T * small); the patches are rounded to `patch_dtype` before they are summed.
  void backward_input(const T* small, const T* weight, T* large, DType patch_dtype = DType::Float64) {
    each([&](std::int64_t n, std::int64_t group) {
      T* image = large + in_at(n, group);
      T* columns = g_.is_plain_product() ? image : columns_.data();
      gemm<T>(g_.patch(), positions(), rows(), {weight + weight_at(group), 1, g_.patch()},
              {small + out_at(n, group), positions(), 1}, columns, positions());
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
    each([&](std::int64_t n, std::int64_t group) {
      const T* columns = patches(large + in_at(n, group));
      gemm<T>(rows(), g_.patch(), positions(), {small + out_at(n, group), positions(), 1}, {columns, 1, positions()},
              weight + weight_at(group), g_.patch(), true);
    });
  }

 private:
  template <class F>
  void each(F f) {
    for (std::int64_t n = 0; n < g_.batch; ++n)
      for (std::int64_t group = 0; group < g_.groups; ++group) f(n, group);
  }
  const T* patches(const T* image) {
    if (g_.is_plain_product()) return image;
    gather_patches(g_, image, columns_.data());
    return columns_.data();
  }
  std::int64_t rows() const { return g_.out_per_group(); }
  std::int64_t positions() const { return g_.out_positions(); }
  std::int64_t in_at(std::int64_t n, std::int64_t group) const {
    return (n * g_.in_channels + group * g_.in_per_group()) * g_.in_positions();
  }
  std::int64_t out_at(std::int64_t n, std::int64_t group) const {
    return (n * g_.out_channels + group * rows()) * positions();
  }
  std::int64_t weight_at(std::int64_t group) const { return group * rows() * g_.patch(); }

  const Geometry& g_;
  std::vector<T> columns_;
};

/// Is a transposed convolution of a half type one that PyTorch does not give to oneDNN? Then the patches, their sums
/// and the bias are rounded one by one (native/NaiveConvolutionTranspose2d.cpp; use_mkldnn in native/Convolution.cpp).
bool is_naive_transposed(const EvalCall& c, const Tensor& input) {
  if (input.dtype == DType::Float16) return true;
  if (input.dtype != DType::BFloat16) return false;
  const std::size_t rank = input.sizes.size() - 2;
  const Sizes stride = spatial(c, "stride", rank), output_padding = spatial(c, "output_padding", rank);
  for (std::size_t i = 0; i < rank; ++i)
    if (output_padding[i] >= stride[i]) return true;
  return false;
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

}  // namespace

Value eval_convolution(EvalCall& c) {
  Tensor out = allocate(c, fake_convolution);
  const Tensor& input = c.tensor("input");
  DType dtype = arithmetic_dtype(input.dtype);
  Tensor x = load(input, dtype), w = load(c.tensor("weight"), dtype), bias = load_optional(c, "bias", dtype);
  Tensor y = empty(dtype, out.sizes);
  bool transposed = c.boolean("transposed");
  Geometry g = transposed ? geometry(c, y, x, w) : geometry(c, x, y, w);
  dispatch_compute(dtype, "convolution", [&]<class T>() {
    Convolution<T> convolution(g);
    if (!transposed) {  // products are summed onto the bias
      if (bias.storage) each_biased<T>(y, bias, [](T, T shift) { return shift; });
      convolution.forward(x.as<T>(), w.as<T>(), y.as<T>(), bias.storage != nullptr);
      return;
    }
    const DType kept = is_naive_transposed(c, input) ? input.dtype : dtype;
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
  dispatch_compute(dtype, "convolution_backward", [&]<class T>() {
    Convolution<T> convolution(g);
    // Gradients of complex products take conjugates of the operands.
    Tensor xc = conjugated(x), wc = conjugated(w);
    if constexpr (!std::is_arithmetic_v<T>)
      for (Tensor* t : {&xc, &wc})
        for (std::int64_t i = 0; i < t->numel(); ++i) t->as<T>()[i] = std::conj(t->as<T>()[i]);
    if (outputs[0].storage) {
      Tensor dx = empty(dtype, x.sizes);
      if (transposed)
        convolution.forward(gy.as<T>(), wc.as<T>(), dx.as<T>());
      else
        convolution.backward_input(gy.as<T>(), wc.as<T>(), dx.as<T>());
      store(0, dx);
    }
    if (outputs[1].storage) {
      Tensor dw = empty(dtype, w.sizes);
      if (transposed)
        convolution.backward_weight(gy.as<T>(), xc.as<T>(), dw.as<T>());
      else
        convolution.backward_weight(xc.as<T>(), gy.as<T>(), dw.as<T>());
      store(1, dw);
    }
    if (outputs[2].storage) {
      DimSplit split = split_at(gy.sizes, 1);
      Tensor db = zeros(dtype, {split.length});
      for (std::int64_t n = 0; n < split.outer; ++n)
        for (std::int64_t k = 0; k < split.length; ++k) {
          const T* plane = gy.as<T>() + (n * split.length + k) * split.inner;
          T sum = T(0);
          for (std::int64_t i = 0; i < split.inner; ++i) sum += plane[i];
          db.as<T>()[k] += sum;
        }
      store(2, db);
    }
  });
  return results;
}

}  // namespace partita
