#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "core/ir/graph.h"

namespace partita {

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
