#pragma once
#include "core/ops/record.h"

namespace partita {

void register_max_pool(OpTable& t);
void register_avg_pool(OpTable& t);
void register_adaptive_pool(OpTable& t);
void register_low_memory_pool(OpTable& t);

/// A pooling window over the last `rank` dimensions, as three dimensions with lower ranks padded in front.
struct Window {
  std::int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
};

/// kernel_size, stride, padding, dilation of a call, repeated to `rank`.
struct PoolArguments {
  Sizes kernel, stride, padding, dilation;
  bool ceil_mode = false;
};
PoolArguments pool_arguments(const FakeCall& c, std::size_t rank);
PoolArguments pool_arguments(const EvalCall& c, std::size_t rank);
/// Result of pooling `input` over its last `rank` dimensions.
TensorMeta pooled(FakeCall& c, const TensorMeta& input, std::size_t rank);
Window window(const PoolArguments& arguments, const Sizes& in, const Sizes& out, std::size_t rank);
/// Number of (batch, channel) planes of a tensor pooled over its last `rank` dimensions.
std::int64_t planes(const Sizes& sizes, std::size_t rank);

}  // namespace partita
