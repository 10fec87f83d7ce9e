#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "core/ir/graph.h"

namespace partita {

/// A batch norm by given statistics, of which no results but the first are read.
struct BatchNorm {
  Node* result = nullptr;
  Arg weight, bias, mean, var, eps;
};
/// The batch norm that alone reads `value`, as its input; nullopt if something else does.
std::optional<BatchNorm> batch_norm_of(const Node& value);

/// The values of a node that is known while compiling; null for others.
using KnownValue = std::function<const Tensor*(const Node&)>;

/// What reads a tensor and gives, for each channel c (dimension 1), scale[c] times its elements plus shift[c].
struct ChannelAffine {
  Node* result = nullptr;
  std::vector<double> scale, shift;
};

/// What the only reader of `value` makes of its channels, if it is a batch norm by running statistics, or adds,
/// subtracts, multiplies or divides by a number or by a known tensor with an element per channel. `value` has at least
/// two dimensions and a known number of channels.
std::optional<ChannelAffine> channel_affine(const Node& value, const KnownValue& known);

}  // namespace partita
