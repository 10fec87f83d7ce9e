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

/// f(image, group)
template <class F>
void each_group(const Geometry& g, F f) {
  for (std::int64_t n = 0; n < g.batch; ++n)
    for (std::int64_t group = 0; group < g.groups; ++group) f(n, group);
}

/// Runs `chain(first channel, channels, sums)` for each block of channels; the first one's sums are the result, the
/// others' are added to it.
template <class F>
void in_blocks(std::int64_t channels, float* result, std::int64_t elements, F chain) {
  std::fill_n(result, elements, 0.0f);
  chain(0, std::min(block, channels), result);
  Buffer sums;
  for (std::int64_t first = block; first < channels; first += block) {
    sums.assign(static_cast<std::size_t>(elements), 0.0f);
    chain(first, std::min(block, channels - first), sums.data());
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

void forward(const Geometry& g, const float* large, const float* weight, float* small) {
  const std::int64_t taps = g.taps(), rows = g.out_per_group(), positions = g.out_positions();
  const Geometry one = of_one_channel(g);
  each_group(g, [&](std::int64_t n, std::int64_t group) {
    const float *image = large + g.in_at(n, group), *filter = weight + g.weight_at(group);
    in_blocks(g.in_per_group(), small + g.out_at(n, group), rows * positions,
              [&](std::int64_t first, std::int64_t channels, float* sums) {
                Buffer columns = buffer(taps * channels * positions), factors = buffer(rows * taps * channels);
                for (std::int64_t c = 0; c < channels; ++c) {
                  each_run(one, [&](std::int64_t tap, std::int64_t at, std::int64_t element, std::int64_t count,
                                    std::int64_t step) {
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
              });
  });
}

void backward_input(const Geometry& g, const float* small, const float* weight, float* large) {
  const std::int64_t rows = g.out_per_group(), pixels = g.in_positions();
  each_group(g, [&](std::int64_t n, std::int64_t group) {
    const float *image = small + g.out_at(n, group), *filter = weight + g.weight_at(group);
    in_blocks(
        rows, large + g.in_at(n, group), g.in_per_group() * pixels,
        [&](std::int64_t first, std::int64_t channels, float* sums) {
          Buffer seen;  // what each pixel sees through a tap
          for (std::int64_t tap = 0; tap < g.taps(); ++tap) {
            seen.assign(static_cast<std::size_t>(channels * pixels), 0.0f);
            each_run(of_one_tap(g, tap),
                     [&](std::int64_t, std::int64_t at, std::int64_t element, std::int64_t count, std::int64_t step) {
                       for (std::int64_t c = 0; c < channels; ++c) {
                         const float* from = image + (first + c) * g.out_positions() + at;
                         float* to = seen.data() + c * pixels + element;
                         for (std::int64_t i = 0; i < count; ++i) to[i * step] = from[i];
                       }
                     });
            gemm_chained(g.in_per_group(), pixels, channels, {filter + first * g.patch() + tap, g.taps(), g.patch()},
                         {seen.data(), pixels, 1}, sums, pixels);
          }
        });
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
