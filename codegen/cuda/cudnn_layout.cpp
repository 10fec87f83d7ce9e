#include "codegen/cuda/cudnn_layout.h"

#include <algorithm>

namespace partita::codegen {

Diagnostic refusal(std::string why) {
  return unsupported("cuda.library", std::move(why));
}

Sizes packed_strides(const Sizes& sizes, bool channels_last) {
  Sizes out(sizes.size(), 1);
  std::int64_t distance = channels_last ? sizes[1] : 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (channels_last && d == 1) continue;
    out[d] = distance;
    distance *= sizes[d];
  }
  return out;
}

bool packed(const ConcreteView& v, bool channels_last) {
  const Sizes strides = packed_strides(v.sizes, channels_last);
  for (std::size_t d = 0; d < strides.size(); ++d)
    if (v.sizes[d] != 1 && v.strides[d] != strides[d]) return false;
  return true;
}

bool nested(const ConcreteView& v) {
  std::vector<std::pair<std::int64_t, std::int64_t>> by_stride;
  for (std::size_t d = 0; d < v.sizes.size(); ++d)
    if (v.sizes[d] != 1) by_stride.emplace_back(v.strides[d], v.sizes[d]);
  std::ranges::sort(by_stride);
  std::int64_t least = 1;
  for (const auto& [stride, size] : by_stride) {
    if (stride < least) return false;
    least = stride * size;
  }
  return true;
}

ConvolutionWindow with_height(ConvolutionWindow w) {
  if (w.stride.size() != 1) return w;
  w.stride.insert(w.stride.begin(), 1);
  w.dilation.insert(w.dilation.begin(), 1);
  w.padding.insert(w.padding.begin(), 0);
  return w;
}

Result<std::vector<int>> narrow(const Sizes& numbers) {
  std::vector<int> out;
  for (const std::int64_t n : numbers) {
    if (n < 0 || n > INT32_MAX) return refusal("more elements than 32 bits count");
    out.push_back(static_cast<int>(n));
  }
  return out;
}

}  // namespace partita::codegen
