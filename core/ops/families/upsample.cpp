// Interpolation as PyTorch's kernels compute it: along each dimension an output element reads a few inputs with weights
// ("taps"). The gradient uses the same taps.
#include "core/ops/families/upsample.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/ops/kernels/outputs.h"
#include "core/ops/record/evaluate.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"

namespace partita {

namespace {

using namespace kernels;

template <class T>
struct Tap {
  std::int64_t index;
  T weight;
};
/// The taps of every output element along one dimension.
template <class T>
using Taps = std::vector<std::vector<Tap<T>>>;

/// The sizes along one dimension and the map between them (area_pixel_compute_scale of PyTorch's UpSample.h).
struct Extent {
  std::int64_t in, out;
  bool align_corners;
  double given;   ///< scale factor; 0: none given
  bool by_sizes;  ///< ignores the scale for equal or doubled sizes: is_small_or_channels_last, and every gradient
  DType weights;  ///< the dtype that weights are rounded to

  template <class T>
  T scale() const {
    if (align_corners) return out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
    return given > 0 ? static_cast<T>(1.0 / given) : static_cast<T>(in) / static_cast<T>(out);
  }
  /// The position in the input of output element i.
  template <class T>
  T source(std::int64_t i) const {
    T at = static_cast<T>(i);
    return align_corners ? scale<T>() * at : scale<T>() * (at + T(0.5)) - T(0.5);
  }
};

/// The input at or before a position, at most the last. A scale factor, which may be any number, can lead far outside.
template <class T>
std::int64_t input_at(const Extent& e, T at) {
  if (!(at < static_cast<T>(e.in))) return e.in - 1;
  return static_cast<std::int64_t>(std::floor(std::max(at, T(-1))));
}

/// PyTorch finds nearest neighbours in single precision, whatever the tensor's dtype.
std::int64_t nearest(const Extent& e, std::int64_t i, bool exact) {
  float scale = e.given > 0 ? static_cast<float>(1.0 / e.given) : static_cast<float>(e.in) / static_cast<float>(e.out);
  float at;
  if (exact)
    at = static_cast<float>((static_cast<double>(i) + 0.5) * static_cast<double>(scale));
  else if (e.by_sizes && e.out == e.in)
    return i;
  else if (e.by_sizes && e.out == 2 * e.in)
    return i / 2;
  else
    at = static_cast<float>(i) * scale;
  return input_at(e, at);
}

template <class T>
std::vector<Tap<T>> linear(const Extent& e, std::int64_t i) {
  if (e.in == e.out) return {{i, T(1)}};
  T at = std::max(e.source<T>(i), T(0));
  const std::int64_t low = input_at(e, at);
  T lambda = rounded(e.weights, std::clamp(at - static_cast<T>(low), T(0), T(1)));
  return {{low, rounded(e.weights, T(1) - lambda)}, {std::min(low + 1, e.in - 1), lambda}};
}

/// The cubic convolution kernel at distance x. a is -0.75 for interpolation, -0.5 with antialiasing.
template <class T>
T cubic_kernel(T x, T a) {
  x = std::abs(x);
  if (x <= T(1)) return ((a + T(2)) * x - (a + T(3))) * x * x + T(1);
  if (x < T(2)) return ((a * x - T(5) * a) * x + T(8) * a) * x - T(4) * a;
  return T(0);
}

template <class T>
std::vector<Tap<T>> cubic(const Extent& e, std::int64_t i) {
  T at = e.source<T>(i);
  const std::int64_t second = input_at(e, at);
  T t = std::clamp(at - static_cast<T>(second), T(0), T(1));
  std::vector<Tap<T>> taps;
  for (std::int64_t k = 0; k < 4; ++k) {
    T weight = cubic_kernel(t + T(1) - static_cast<T>(k), T(-0.75));
    taps.push_back({std::clamp<std::int64_t>(second - 1 + k, 0, e.in - 1), rounded(e.weights, weight)});
  }
  return taps;
}

template <Resampling mode, class T>
T antialias_filter(T x) {
  if constexpr (mode == Resampling::LinearAntialias) return std::max(T(1) - std::abs(x), T(0));
  if constexpr (mode == Resampling::CubicAntialias) return cubic_kernel(x, T(-0.5));
  auto sinc = [](T v) {
    if (v == T(0)) return T(1);
    v *= std::numbers::pi_v<T>;
    return std::sin(v) / v;
  };
  return x >= T(-3) && x < T(3) ? sinc(x) * sinc(x / T(3)) : T(0);
}

/// The inputs under the antialiasing filter, which is wider when there are fewer outputs than inputs.
template <Resampling mode, class T>
std::vector<Tap<T>> antialiased(const Extent& e, std::int64_t i) {
  constexpr int width = mode == Resampling::LinearAntialias ? 2 : mode == Resampling::CubicAntialias ? 4 : 6;
  T scale = e.scale<T>(), stretch = std::max(scale, T(1)), support = T(width) / T(2) * stretch;
  T center = scale * (static_cast<T>(i) + T(0.5)), total = 0;
  const auto rounded_within = [&](T at) {
    return at > T(0) ? static_cast<std::int64_t>(std::min(at + T(0.5), static_cast<T>(e.in))) : 0;
  };
  const std::int64_t begin = rounded_within(center - support), end = rounded_within(center + support);
  std::vector<Tap<T>> taps;
  for (std::int64_t k = begin; k < end; ++k) {
    T weight = antialias_filter<mode>((static_cast<T>(k) - center + T(0.5)) / stretch);
    taps.push_back({k, weight});
    total += weight;
  }
  if (total != T(0))
    for (Tap<T>& tap : taps) tap.weight /= total;
  return taps;
}

template <Resampling mode, class T>
Taps<T> taps_of(const Extent& e) {
  Taps<T> taps;
  for (std::int64_t i = 0; i < e.out; ++i) {
    if constexpr (mode == Resampling::Nearest || mode == Resampling::NearestExact)
      taps.push_back({{nearest(e, i, mode == Resampling::NearestExact), T(1)}});
    else if constexpr (mode == Resampling::Linear)
      taps.push_back(linear<T>(e, i));
    else if constexpr (mode == Resampling::Cubic)
      taps.push_back(cubic<T>(e, i));
    else
      taps.push_back(antialiased<mode, T>(e, i));
  }
  return taps;
}

bool align_corners(const auto& c) {
  return c.schema.index_of("align_corners") >= 0 && c.boolean("align_corners");
}

/// One interpolation between two sizes. One and two dimensions are treated as three, with leading sizes of 1.
template <Resampling mode, std::size_t rank, class T>
struct Resampler {
  std::int64_t in[3] = {1, 1, 1}, planes = 1;
  Taps<T> taps[3] = {{{{0, T(1)}}}, {{{0, T(1)}}}, {{{0, T(1)}}}};

  Resampler(const EvalCall& c, const Sizes& from, const Sizes& to, DType weights, bool by_sizes)
      : planes(from[0] * from[1]) {
    constexpr const char* scale_names[] = {"scales_d", "scales_h", "scales_w"};
    for (std::size_t d = 0; d < rank; ++d) {
      const char* name = rank == 1 ? "scales" : scale_names[3 - rank + d];
      in[3 - rank + d] = from[d + 2];
      taps[3 - rank + d] = taps_of<mode, T>(
          {from[d + 2], to[d + 2], align_corners(c), c.has(name) ? as_double(c.number(name)) : 0.0, by_sizes, weights});
    }
  }

  /// Calls f(output position, plane times input depth, taps along depth, height, width) for every output element.
  void each(auto f) const {
    std::int64_t position = 0;
    for (std::int64_t p : steps(planes, 4096))
      for (const auto& d : taps[0])
        for (const auto& h : taps[1])
          for (const auto& w : taps[2]) f(position++, p * in[0], d, h, w);
  }
  std::int64_t row(std::int64_t d, std::int64_t h) const { return (d * in[1] + h) * in[2]; }
};

bool is_small_or_channels_last(const EvalCall& c, const Sizes& out) {
  const CallOfValues metas(c);
  const TensorMeta& self = metas.call.tensor("self");
  return partita::is_small_or_channels_last(metas.call, self.sizes, self.strides, {out.begin() + 2, out.end()});
}

template <std::size_t rank>
Meta fake_upsample(FakeCall& c) {
  const TensorMeta& input = c.tensor(c.schema.args[0].name);
  const SymList output = resample_target(c, input, rank).sizes;
  SymList sizes(input.sizes.begin(), input.sizes.begin() + 2);
  sizes.insert(sizes.end(), output.begin(), output.end());
  return new_like(input, sizes, suggest_memory_format(input, c.shapes));
}

template <Resampling mode>
constexpr bool copies = mode == Resampling::Nearest || mode == Resampling::NearestExact;

/// Whether PyTorch's backward kernel keeps the gradient's memory format.
template <Resampling mode, std::size_t rank>
constexpr bool backward_keeps_format =
    mode == Resampling::Linear || mode == Resampling::LinearAntialias || (rank == 2 && copies<mode>);

template <Resampling mode, std::size_t rank>
Meta fake_upsample_backward(FakeCall& c) {
  const TensorMeta& grad = c.tensor("grad_output");
  SymList input = c.syms("input_size"), output = c.syms("output_size");
  check_resample_sizes(c, input, output, rank);
  output.insert(output.begin(), input.begin(), input.begin() + 2);
  if (grad.dim() != output.size()) fail("Expected grad_output to be a tensor of dimension " + std::to_string(rank + 2));
  for (std::size_t d = 0; d < output.size(); ++d)
    if (!checked(c, sym_eq(grad.sizes[d], output[d]), "upsample gradient"))
      fail("Expected grad_output to have the same shape as output; output.size(" + std::to_string(d) +
           ") = " + output[d].str() + " but got grad_output.size(" + std::to_string(d) + ") = " + grad.sizes[d].str());
  return new_like(grad, input,
                  backward_keeps_format<mode, rank> ? suggest_memory_format(grad, c.shapes) : MemoryFormat::Contiguous);
}

template <Resampling mode, std::size_t rank>
Value eval_upsample(EvalCall& c) {
  const Tensor& self = c.tensor("self");
  if (!copies<mode> && self.dtype == DType::UInt8) fail_unsupported("interpolation of uint8 in fixed-point numbers");
  if (!is_floating(self.dtype) && self.dtype != DType::UInt8)
    fail("\"" + c.schema.base.substr(6) + "\" not implemented for '" + std::string(torch_name(self.dtype)) + "'");
  DType dtype = self.dtype == DType::Float64 ? DType::Float64 : DType::Float32;
  Tensor x = load(self, dtype), y = zeros_for(c, fake_upsample<rank>, dtype);
  dispatch_floating(dtype, "upsample", [&]<class T>() {
    const bool special = is_small_or_channels_last(c, y.sizes);
    // PyTorch's general kernel rounds weights to the tensor's dtype.
    const DType weights = mode == Resampling::Linear && special ? DType::Float32 : self.dtype;
    Resampler<mode, rank, T> resampler(c, x.sizes, y.sizes, weights, special);
    resampler.each([&](std::int64_t position, std::int64_t depth, const auto& ds, const auto& hs, const auto& ws) {
      T sum = 0;
      for (const Tap<T>& d : ds) {
        T plane = 0;
        for (const Tap<T>& h : hs) {
          const T* in = x.as<T>() + resampler.row(depth + d.index, h.index);
          T line = 0;
          for (const Tap<T>& w : ws) line += in[w.index] * w.weight;
          plane += line * h.weight;
        }
        sum += plane * d.weight;
      }
      y.as<T>()[position] = sum;
    });
  });
  return y;
}

template <Resampling mode, std::size_t rank>
Value eval_upsample_backward(EvalCall& c) {
  Tensor dx = zeros_for(c, fake_upsample_backward<mode, rank>), grad = load(c.tensor("grad_output"), dx.dtype);
  dispatch_floating(dx.dtype, "upsample_backward", [&]<class T>() {
    Resampler<mode, rank, T> resampler(c, dx.sizes, grad.sizes, dx.dtype, true);
    resampler.each([&](std::int64_t position, std::int64_t depth, const auto& ds, const auto& hs, const auto& ws) {
      T g = grad.as<T>()[position];
      for (const Tap<T>& d : ds)
        for (const Tap<T>& h : hs) {
          T* to = dx.as<T>() + resampler.row(depth + d.index, h.index);
          for (const Tap<T>& w : ws) to[w.index] += g * d.weight * h.weight * w.weight;
        }
    });
  });
  return dx;
}

template <Resampling mode, std::size_t rank>
Arg interpolate(DecomposeCall& c) {
  if constexpr (copies<mode>)
    return interpolate_nearest(c, rank, mode == Resampling::NearestExact);
  else if constexpr (mode == Resampling::Linear)
    return interpolate_linear(c, rank);
  else if constexpr (mode == Resampling::Cubic)
    return interpolate_cubic(c);
  else
    return interpolate_by_sizes(c, rank);
}

/// For half types the call is kept, since PyTorch's kernels round between steps (Kept::HalfTypes).
template <Resampling mode, std::size_t rank>
Arg decompose_by_factors(DecomposeCall& c) {
  const DType t = Builder::tensor(c.args[0]).dtype;
  const bool rounds = !copies<mode> && (t == DType::BFloat16 || t == DType::Float16);
  return rounds ? interpolate_by_sizes(c, rank) : interpolate<mode, rank>(c);
}

/// Evaluates the overload with sizes and scales, which is what eager PyTorch runs.
template <std::size_t rank>
Value eval_by_factors(EvalCall& c) {
  constexpr auto by_sizes = [](DecomposeCall& call) { return interpolate_by_sizes(call, rank); };
  return unwrap(evaluate_by_decomposition(c.schema, by_sizes, c.args, c.context, nullptr));
}

template <Resampling mode, std::size_t rank>
OpRecord record(std::string_view gradient) {
  OpRecord out{
      .fake = fake_upsample<rank>, .eval = eval_upsample<mode, rank>, .autograd = {.derivative = {{"self", gradient}}}};
  if (copies<mode>) out.decompose = out.compile_decompose = interpolate<mode, rank>;
  if (mode == Resampling::Linear || mode == Resampling::Cubic) {
    out.compile_decompose = interpolate<mode, rank>;
    out.kept = Kept::HalfTypes;
  }
  return out;
}

}  // namespace

void register_upsample(OpTable& t) {
  t.default_family = Family::Index;
#define UPSAMPLE(name, mode, rank, arguments)                                                                          \
  t.add("aten." name ".default",                                                                                       \
        record<Resampling::mode, rank>(name "_backward(grad, output_size, sizes(self), " arguments ")"));              \
  t.add("aten." name "_backward.default", fake_upsample_backward<Resampling::mode, rank>,                              \
        eval_upsample_backward<Resampling::mode, rank>, {{"grad_output", name "(grad, output_size, " arguments ")"}}); \
  t.add("aten." name ".vec", fake_upsample<rank>, eval_by_factors<rank>, {},                                           \
        {.decompose = decompose_by_factors<Resampling::mode, rank>,                                                    \
         .compile_decompose = decompose_by_factors<Resampling::mode, rank>})
  UPSAMPLE("upsample_nearest1d", Nearest, 1, "scales");
  UPSAMPLE("upsample_nearest2d", Nearest, 2, "scales_h, scales_w");
  UPSAMPLE("upsample_nearest3d", Nearest, 3, "scales_d, scales_h, scales_w");
  UPSAMPLE("_upsample_nearest_exact1d", NearestExact, 1, "scales");
  UPSAMPLE("_upsample_nearest_exact2d", NearestExact, 2, "scales_h, scales_w");
  UPSAMPLE("_upsample_nearest_exact3d", NearestExact, 3, "scales_d, scales_h, scales_w");
  UPSAMPLE("upsample_linear1d", Linear, 1, "align_corners, scales");
  UPSAMPLE("upsample_bilinear2d", Linear, 2, "align_corners, scales_h, scales_w");
  UPSAMPLE("upsample_trilinear3d", Linear, 3, "align_corners, scales_d, scales_h, scales_w");
  UPSAMPLE("upsample_bicubic2d", Cubic, 2, "align_corners, scales_h, scales_w");
  UPSAMPLE("_upsample_bilinear2d_aa", LinearAntialias, 2, "align_corners, scales_h, scales_w");
  UPSAMPLE("_upsample_bicubic2d_aa", CubicAntialias, 2, "align_corners, scales_h, scales_w");
  UPSAMPLE("_upsample_lanczos2d_aa", LanczosAntialias, 2, "align_corners, scales_h, scales_w");
#undef UPSAMPLE
}

}  // namespace partita
