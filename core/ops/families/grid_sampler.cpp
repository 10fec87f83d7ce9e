// grid_sampler_2d/3d: reads an image at coordinates that a grid gives; and the gradients of image and grid.
#include "core/ops/families/grid_sampler.h"

#include <algorithm>
#include <array>

#include "core/ops/kernels/narrow.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

/// Fails unless input [N, C, spatial...] and grid [N, out spatial..., rank] fit together.
void check_operands(FakeCall& c, std::size_t rank) {
  const TensorMeta &input = c.tensor("input"), &grid = c.tensor("grid");
  if (input.dim() != rank + 2 || grid.dim() != rank + 2)
    fail("grid_sampler(): expected " + std::to_string(rank + 2) + "D input and grid with same number of dimensions");
  if (input.dtype != grid.dtype)
    fail("grid_sampler(): expected input and grid to have same dtype, but input has " +
         std::string(torch_name(input.dtype)) + " and grid has " + std::string(torch_name(grid.dtype)));
  if (!checked(c, sym_eq(input.sizes[0], grid.sizes[0]), "grid_sampler batch"))
    fail("grid_sampler(): expected grid and input to have same batch size, but got input with batch size " +
         input.sizes[0].str() + " and grid with batch size " + grid.sizes[0].str());
  if (!checked(c, sym_eq(grid.sizes.back(), static_cast<std::int64_t>(rank)), "grid_sampler grid"))
    fail("grid_sampler(): expected grid to have size " + std::to_string(rank) + " in last dimension, but got " +
         grid.sizes.back().str());
  for (std::size_t d = 2; d < input.dim(); ++d)
    if (!checked(c, sym_lt(0, input.sizes[d]), "grid_sampler input"))
      fail("grid_sampler(): expected input to have non-empty spatial dimensions, but dimension " + std::to_string(d) +
           " is empty");
  if (rank == 3 && grid_mode(c) == GridMode::Bicubic)
    fail("grid_sampler(): bicubic interpolation only supports 4D input");
}

template <std::size_t rank>
Meta fake_grid_sampler(FakeCall& c) {
  check_operands(c, rank);
  const TensorMeta &input = c.tensor("input"), &grid = c.tensor("grid");
  SymList sizes(input.sizes.begin(), input.sizes.begin() + 2);
  sizes.insert(sizes.end(), grid.sizes.begin() + 1, grid.sizes.end() - 1);
  return new_like(input, sizes);
}

template <std::size_t rank>
Meta fake_grid_sampler_backward(FakeCall& c) {
  check_operands(c, rank);
  const TensorMeta &input = c.tensor("input"), &grid = c.tensor("grid");
  return MetaTuple{{meta_if(c.booleans("output_mask")[0], new_like(input, input.sizes)), new_like(grid, grid.sizes)}};
}

/// Converts a coordinate of the grid, from -1 to 1, to a position among `size` inputs along one dimension.
template <class T>
struct Location {
  std::int64_t size;
  GridPadding padding;
  bool align_corners;

  struct Place {
    T at, slope;  ///< the position, and its derivative by the coordinate without the factor scaling()
  };
  T scaling() const { return T(align_corners ? size - 1 : size) / T(2); }
  T unnormalized(T x) const {
    T scaled = (x + T(1)) * scaling();
    return align_corners ? scaled : scaled - T(0.5);
  }
  /// Applies the padding mode to a position. Beyond the border the derivative is 0.
  Place padded(T at) const {
    using std::abs, std::trunc;
    T slope(1);
    if (padding == GridPadding::Zeros) return {at, slope};
    if (padding == GridPadding::Reflection) {
      T low(align_corners ? 0.0 : -0.5), twice_span(2 * (align_corners ? size - 1 : size));
      if (twice_span == T(0)) return {T(0), T(0)};
      T from = at - low;
      if (from < T(0)) slope = T(-1);
      from = abs(from);
      T extra = from - trunc(from / twice_span) * twice_span, back = twice_span - extra;
      if (back < extra) slope = -slope;
      at = std::min(extra, back) + low;
    }
    T last(static_cast<double>(size - 1));
    // NaN goes to the first input.
    if (!(at > T(0))) return {T(0), T(0)};
    if (!(at < last)) return {last, T(0)};
    return {at, slope};
  }
  /// The input at a position; -1 when the position is outside of the image.
  std::int64_t index(T at) const {
    using std::isfinite;
    if (!isfinite(at)) return -1;
    auto v = static_cast<double>(at);
    return v >= 0 && v < static_cast<double>(size) ? static_cast<std::int64_t>(v) : -1;
  }
};

/// The inputs along one dimension that an output element reads: their indices (-1: outside of the image), their
/// weights, and the weights' derivatives by the position. `factor` is the derivative of the position by the grid's
/// coordinate.
template <class T>
struct GridTaps {
  int count = 1;
  std::int64_t index[4];
  T weight[4], slope[4];
  T factor{};
};

template <class T>
GridTaps<T> cubic_taps(const Location<T>& l, T x) {
  using std::floor;
  const T a(-0.75);
  T at = l.unnormalized(x), first = floor(at), t = at - first;
  auto near = [&](T u) { return ((a + T(2)) * u - (a + T(3))) * u * u + T(1); };
  auto far = [&](T u) { return ((a * u - T(5) * a) * u + T(8) * a) * u - T(4) * a; };
  T one_less = T(1) - t, two_less = T(2) - t, more = T(-1) - t;
  GridTaps<T> taps{
      4,
      {},
      {far(t + T(1)), near(t), near(one_less), far(two_less)},
      {(T(-3) * a * more - T(10) * a) * more - T(8) * a, (T(-3) * (a + T(2)) * -t - T(2) * (a + T(3))) * -t,
       (T(3) * (a + T(2)) * one_less - T(2) * (a + T(3))) * one_less,
       (T(3) * a * two_less - T(10) * a) * two_less + T(8) * a}};
  taps.factor = l.scaling();
  for (int k = 0; k < 4; ++k) {
    taps.index[k] = l.index(l.padded(first + T(k - 1)).at);
    taps.slope[k] = -taps.slope[k];
  }
  return taps;
}

template <class T>
GridTaps<T> taps_at(const Location<T>& l, GridMode mode, T x) {
  if (mode == GridMode::Bicubic) return cubic_taps(l, x);
  using std::floor, std::nearbyint;
  auto [at, slope] = l.padded(l.unnormalized(x));
  if (mode == GridMode::Nearest) return {1, {l.index(nearbyint(at))}, {T(1)}, {T(0)}};
  T low = floor(at), t = at - low;
  return {2, {l.index(low), l.index(low + T(1))}, {T(1) - t, t}, {T(-1), T(1)}, slope * l.scaling()};
}

/// The taps along depth, height, width.
template <class T>
using PlaceTaps = std::array<GridTaps<T>, 3>;

/// The operands of a call, and the taps of each output position. A 2-d image is treated as 3-d with depth 1.
template <std::size_t rank, class T, class S>
struct Sampler {
  Tensor input, grid;
  std::int64_t batch, channels, places = 1, plane = 1;
  GridMode mode;
  Location<T> along[3];  ///< depth, height, width

  Sampler(const EvalCall& c, DType dtype) : input(load(c.tensor("input"), dtype)), grid(load(c.tensor("grid"), dtype)) {
    batch = input.sizes[0], channels = input.sizes[1], mode = grid_mode(c);
    for (std::size_t d = 1; d <= rank; ++d) places *= grid.sizes[d], plane *= input.sizes[d + 1];
    for (Location<T>& l : along) l = {1, grid_padding(c), c.boolean("align_corners")};
    for (std::size_t d = 0; d < rank; ++d) along[3 - rank + d].size = input.sizes[d + 2];
  }

  /// How many output positions PyTorch's 2-d kernel processes at a time: a vector of a half type with AVX2, for which
  /// it is registered. The order of the sums depends on it, which shows where sums round.
  static constexpr std::int64_t block = rank == 2 ? 16 : 1;

  /// Calls f(sample, first output position, taps of the positions from there on) for one block at a time.
  void each(auto f) const {
    std::vector<PlaceTaps<T>> taps;
    for (std::int64_t n : steps(batch, 4096))
      for (std::int64_t first = 0; first < places; first += block) {
        taps.clear();
        for (std::int64_t p = first; p < std::min(first + block, places); ++p) {
          const S* at = grid.as<S>() + (n * places + p) * static_cast<std::int64_t>(rank);
          // The grid lists width first.
          PlaceTaps<T> own = {GridTaps<T>{1, {0}, {T(1)}, {T(0)}}};
          for (std::size_t d = 0; d < rank; ++d) own[2 - d] = taps_at(along[2 - d], mode, T(at[d]));
          taps.push_back(own);
        }
        f(n, first, taps);
      }
  }
  /// Calls f(index of the tap along depth, along height, along width) in the order of PyTorch's kernels.
  void corners(auto f) const {
    const int count = mode == GridMode::Bicubic ? 4 : mode == GridMode::Bilinear ? 2 : 1;
    for (int d = 0; d < (rank == 3 ? count : 1); ++d)
      for (int outer = 0; outer < count; ++outer)
        for (int inner = 0; inner < count; ++inner) mode == GridMode::Bicubic ? f(d, inner, outer) : f(d, outer, inner);
  }
  /// The position in the image's plane that three taps read; -1 outside of the image.
  std::int64_t position(const PlaceTaps<T>& taps, int d, int h, int w) const {
    std::int64_t z = taps[0].index[d], y = taps[1].index[h], x = taps[2].index[w];
    return z < 0 || y < 0 || x < 0 ? -1 : (z * along[1].size + y) * along[2].size + x;
  }
  T value(const S* plane_data, const PlaceTaps<T>& taps, int d, int h, int w) const {
    std::int64_t i = position(taps, d, h, w);
    return i < 0 ? T(0) : T(plane_data[i]);
  }

  T interpolated(const S* data, const PlaceTaps<T>& taps) const {
    T sum(0);
    if (mode != GridMode::Bicubic) {
      corners([&](int d, int h, int w) {
        sum += value(data, taps, d, h, w) * (taps[2].weight[w] * taps[1].weight[h] * taps[0].weight[d]);
      });
      return sum;
    }
    for (int h = 0; h < 4; ++h) {
      T line(0);
      for (int w = 0; w < 4; ++w) line += taps[2].weight[w] * value(data, taps, 0, h, w);
      sum += taps[1].weight[h] * line;
    }
    return sum;
  }
  /// What an output element with gradient g adds to the gradient of the input that three taps read.
  T share(const PlaceTaps<T>& taps, int d, int h, int w, T g) const {
    T wd = taps[0].weight[d], wh = taps[1].weight[h], ww = taps[2].weight[w];
    return mode == GridMode::Bicubic ? g * ww * wh : ww * wh * wd * g;
  }
  /// Adds what an output element with gradient g contributes to the derivatives by depth, height and width.
  void add_slopes(const S* data, const PlaceTaps<T>& taps, T g, T (&slopes)[3]) const {
    const auto &td = taps[0], &th = taps[1], &tw = taps[2];
    if (mode == GridMode::Bilinear && rank == 2) {
      auto v = [&](int h, int w) { return value(data, taps, 0, h, w); };
      slopes[1] += ((v(1, 0) - v(0, 0)) * tw.weight[0] + (v(1, 1) - v(0, 1)) * tw.weight[1]) * g;
      slopes[2] += ((v(0, 1) - v(0, 0)) * th.weight[0] + (v(1, 1) - v(1, 0)) * th.weight[1]) * g;
      return;
    }
    corners([&](int d, int h, int w) {
      T v = value(data, taps, d, h, w);
      if (mode == GridMode::Bicubic) {
        slopes[1] += v * g * th.slope[h] * tw.weight[w];
        slopes[2] += v * g * tw.slope[w] * th.weight[h];
        return;
      }
      slopes[0] += v * tw.weight[w] * th.weight[h] * g * td.slope[d];
      slopes[1] += v * tw.weight[w] * td.weight[d] * g * th.slope[h];
      slopes[2] += v * th.weight[h] * td.weight[d] * g * tw.slope[w];
    });
  }
};

template <std::size_t rank>
Value eval_grid_sampler(EvalCall& c) {
  Tensor y = zeros_for(c, fake_grid_sampler<rank>);
  dispatch_narrow(c.tensor("input").dtype, "grid_sampler", [&]<class T, class S>() {
    Sampler<rank, T, S> s(c, y.dtype);
    s.each([&](std::int64_t n, std::int64_t first, const std::vector<PlaceTaps<T>>& taps) {
      for (std::int64_t k = n * s.channels; k < (n + 1) * s.channels; ++k)
        for (std::size_t i = 0; i < taps.size(); ++i)
          y.as<S>()[k * s.places + first + static_cast<std::int64_t>(i)] =
              static_cast<S>(s.interpolated(s.input.template as<S>() + k * s.plane, taps[i]));
    });
  });
  return y;
}

template <std::size_t rank>
Value eval_grid_sampler_backward(EvalCall& c) {
  DType dtype = evaluation_dtype(c.tensor("input").dtype);
  bool wants_input = c.booleans("output_mask")[0];
  Tensor grad = load(c.tensor("grad_output"), dtype), dx = zeros(dtype, c.tensor("input").sizes),
         dgrid = zeros(dtype, c.tensor("grid").sizes);
  dispatch_narrow(c.tensor("input").dtype, "grid_sampler_backward", [&]<class T, class S>() {
    Sampler<rank, T, S> s(c, dtype);
    if (grad.numel() != s.batch * s.channels * s.places)
      fail("grid_sampler backward: grad_output does not fit input and grid");
    s.each([&](std::int64_t n, std::int64_t first, const std::vector<PlaceTaps<T>>& taps) {
      auto gradient = [&](std::int64_t k, std::size_t i) {
        return T(grad.as<S>()[k * s.places + first + static_cast<std::int64_t>(i)]);
      };
      for (std::int64_t k = n * s.channels; k < (n + 1) * s.channels; ++k)
        s.corners([&](int d, int h, int w) {
          for (std::size_t i = 0; i < taps.size(); ++i)
            if (std::int64_t at = s.position(taps[i], d, h, w); at >= 0) {
              S& sum = dx.as<S>()[k * s.plane + at];
              sum = static_cast<S>(T(sum) + s.share(taps[i], d, h, w, gradient(k, i)));
            }
        });
      for (std::size_t i = 0; i < taps.size(); ++i) {
        T slopes[3] = {T(0), T(0), T(0)};
        for (std::int64_t k = n * s.channels; k < (n + 1) * s.channels; ++k)
          s.add_slopes(s.input.template as<S>() + k * s.plane, taps[i], gradient(k, i), slopes);
        S* to = dgrid.as<S>() + (n * s.places + first + static_cast<std::int64_t>(i)) * static_cast<std::int64_t>(rank);
        for (std::size_t d = 0; d < rank; ++d) to[d] = static_cast<S>(slopes[2 - d] * taps[i][2 - d].factor);
      }
    });
  });
  return ValueList{wants_input ? Value(dx) : Value(), dgrid};
}

}  // namespace

void register_grid_sampler(OpTable& t) {
  t.default_family = Family::Index;
#define GRID_SAMPLER(name, rank, ...)                                                                           \
  t.add("aten." name ".default", fake_grid_sampler<rank>, eval_grid_sampler<rank>,                              \
        {{"input, grid", "aten." name "_backward.default(grad, input, grid, interpolation_mode, padding_mode, " \
                         "align_corners, output_mask)"}},                                                       \
        {__VA_ARGS__});                                                                                         \
  t.add("aten." name "_backward.default", fake_grid_sampler_backward<rank>, eval_grid_sampler_backward<rank>)
  GRID_SAMPLER("grid_sampler_2d", 2, .compile_decompose = decompose_grid_sampler_2d, .kept = Kept::HalfTypes);
  GRID_SAMPLER("grid_sampler_3d", 3);
#undef GRID_SAMPLER
  t.add("aten.grid_sampler.default",
        {.program = "grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners) if dim(input) == 4 "
                    "else grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners)"});
}

}  // namespace partita
