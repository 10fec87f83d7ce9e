#include "core/ops/families/convolution_onednn.h"

#include <vector>

#include "core/ops/kernels/gemm.h"

namespace partita::onednn {

namespace {

using kernels::gemm_chained;

/// Channels whose products make one chain.
constexpr std::int64_t block = 16;

using Buffer = std::vector<float>;

Buffer buffer(std::int64_t elements) {
  return Buffer(static_cast<std::size_t>(elements));
}

/// Runs `chain(first channel, channels, sums)` for each block of channels; the first one's sums go onto the result,
/// `after_first` is called, and the others' sums are added. Without neighbours there is one chain of all channels.
template <class Chain, class After>
void in_blocks(const Geometry& g, std::int64_t channels, float* result, std::int64_t elements, Chain chain,
               After after_first) {
  const std::int64_t width = g.taps() == 1 ? channels : std::min(block, channels);
  chain(0, width, result);
  after_first();
  Buffer sums;
  for (std::int64_t first = width; first < channels; first += width) {
    sums.assign(static_cast<std::size_t>(elements), 0.0f);
    chain(first, std::min(width, channels - first), sums.data());
    for (std::int64_t i = 0; i < elements; ++i) result[i] += sums[static_cast<std::size_t>(i)];
  }
}

/// The geometry of one channel: its patches have a row per tap.
Geometry of_one_channel(Geometry g) {
  g.in_channels = g.groups;
  return g;
}

/// The window of a single tap of one channel.
Geometry of_one_tap(const Geometry& g, std::int64_t tap) {
  Geometry one = of_one_channel(g);
  for (int d = 2; d >= 0; --d) {
    one.padding[d] -= tap % g.kernel[d] * g.dilation[d];
    tap /= g.kernel[d];
    one.kernel[d] = 1;
  }
  return one;
}

}  // namespace

void forward(const Geometry& g, const float* large, const float* weight, const float* bias, float* small) {
  const std::int64_t taps = g.taps(), rows = g.out_per_group(), positions = g.out_positions();
  const Geometry one = of_one_channel(g);
  each_group(g, [&](std::int64_t n, std::int64_t group) {
    const float *image = large + g.in_at(n, group), *filter = weight + g.weight_at(group);
    float* result = small + g.out_at(n, group);
    auto chain = [&](std::int64_t first, std::int64_t channels, float* sums) {
      Buffer columns = buffer(taps * channels * positions), factors = buffer(rows * taps * channels);
      for (std::int64_t c = 0; c < channels; ++c) {
        each_run(one,
                 [&](std::int64_t tap, std::int64_t at, std::int64_t element, std::int64_t count, std::int64_t step) {
                   const float* from = image + (first + c) * g.in_positions() + element;
                   float* to = columns.data() + (tap * channels + c) * positions + at;
                   for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * step];
                 });
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t tap = 0; tap < taps; ++tap)
            factors[static_cast<std::size_t>((r * taps + tap) * channels + c)] =
                filter[r * g.patch() + (first + c) * taps + tap];
      }
      gemm_chained(rows, positions, taps * channels, {factors.data(), taps * channels, 1},
                   {columns.data(), positions, 1}, sums, positions);
    };
    auto add_bias = [&] {
      for (std::int64_t r = 0; bias && r < rows; ++r)
        for (std::int64_t i = 0; i < positions; ++i) result[r * positions + i] += bias[group * rows + r];
    };
    std::fill_n(result, rows * positions, 0.0f);
    const bool by_channel = g.groups > 1;  // such sums start at the bias
    if (by_channel) add_bias();
    in_blocks(g, g.in_per_group(), result, rows * positions, chain, [&] {
      if (!by_channel) add_bias();
    });
  });
}

void backward_input(const Geometry& g, const float* small, const float* weight, float* large) {
  const std::int64_t channels = g.out_per_group(), rows = g.in_per_group(), pixels = g.in_positions();
  each_group(g, [&](std::int64_t n, std::int64_t group) {
    const float *image = small + g.out_at(n, group), *filter = weight + g.weight_at(group);
    auto chain = [&](std::int64_t first, std::int64_t count, float* sums) {
      Buffer seen;  // what each pixel sees through a tap
      for (std::int64_t tap = 0; tap < g.taps(); ++tap) {
        seen.assign(static_cast<std::size_t>(count * pixels), 0.0f);
        each_run(of_one_tap(g, tap),
                 [&](std::int64_t, std::int64_t at, std::int64_t element, std::int64_t run, std::int64_t step) {
                   for (std::int64_t c = 0; c < count; ++c) {
                     const float* from = image + (first + c) * g.out_positions() + at;
                     float* to = seen.data() + c * pixels + element;
                     for (std::int64_t i = 0; i < run; ++i) to[i * step] = from[i];
                   }
                 });
        gemm_chained(rows, pixels, count, {filter + first * g.patch() + tap, g.taps(), g.patch()},
                     {seen.data(), pixels, 1}, sums, pixels);
      }
    };
    float* result = large + g.in_at(n, group);
    std::fill_n(result, rows * pixels, 0.0f);
    in_blocks(g, channels, result, rows * pixels, chain, [] {});
  });
}

void backward_weight(const Geometry& g, const float* large, const float* small, float* weight) {
  const std::int64_t rows = g.out_per_group(), positions = g.out_positions();
  std::fill_n(weight, g.out_channels * g.patch(), 0.0f);
  Buffer columns = buffer(g.patch() * positions);
  each_group(g, [&](std::int64_t n, std::int64_t group) {
    gather_patches(g, large + g.in_at(n, group), columns.data());
    gemm_chained(rows, g.patch(), positions, {small + g.out_at(n, group), positions, 1}, {columns.data(), 1, positions},
                 weight + g.weight_at(group), g.patch());
  });
}

}  // namespace partita::onednn
