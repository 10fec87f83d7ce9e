#pragma once
// The geometry of a convolution's sliding window, for the interpreter's kernels.
#include <algorithm>
#include <cstdint>

namespace partita {

/// A convolution from `in` to `out` in three spatial dimensions; fewer are padded in front. For a transposed
/// convolution the roles are swapped: `in` is the larger tensor, and each position of the smaller one belongs to a
/// patch of it.
struct Geometry {
  std::int64_t batch, groups;
  std::int64_t in_channels, out_channels;  ///< of all groups together
  std::int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];

  std::int64_t in_positions() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_positions() const { return out[0] * out[1] * out[2]; }
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::int64_t in_per_group() const { return in_channels / groups; }
  std::int64_t out_per_group() const { return out_channels / groups; }
  std::int64_t patch() const { return in_per_group() * taps(); }
  /// Offsets of a group's planes in an image, and of a group's filters.
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

/// Calls f(image, group) for every group of every image.
template <class F>
void each_group(const Geometry& g, F f) {
  for (std::int64_t n = 0; n < g.batch; ++n)
    for (std::int64_t group = 0; group < g.groups; ++group) f(n, group);
}

/// Calls f(row of the column matrix, its first column, element, count, step) for each run of elements within the image.
/// Rows are (channel, tap), columns are output positions; `element` is an index into the group's input planes.
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

/// Fills columns[patch, output positions] for one group of one image.
template <class T>
void gather_patches(const Geometry& g, const T* image, T* columns) {
  std::fill_n(columns, g.patch() * g.out_positions(), T(0));
  each_run(g, [&](std::int64_t row, std::int64_t at, std::int64_t element, std::int64_t count, std::int64_t step) {
    T* to = columns + row * g.out_positions() + at;
    for (std::int64_t i = 0; i < count; ++i) to[i] = image[element + i * step];
  });
}

}  // namespace partita
