#pragma once
#include <array>

#include "core/ops/record.h"

namespace partita {

/// How an interpolation finds the inputs an output reads.
enum class Resampling : unsigned char {
  Nearest,
  NearestExact,
  Linear,
  Cubic,
  LinearAntialias,
  CubicAntialias,
  LanczosAntialias
};

/// Output sizes of the spatial dimensions, and the scale given for each (0: none).
struct ResampleTarget {
  SymList sizes;
  std::vector<double> scales;
};
/// Of either overload: output_size or scale_factors (.vec), or output_size and a scale argument for each dimension.
/// `input` has a batch dimension, channels, and `rank` more.
ResampleTarget resample_target(const FakeCall& c, const TensorMeta& input, std::size_t rank);

/// PyTorch's kernels come in two kinds: a general one, and one for images that are small or have their channels last
/// (and more than three). They differ in the precision of weights, and the latter's nearest neighbours take no notice
/// of a factor between equal sizes or to twice the size. Concrete sizes of the input [n, c, ...] and of its output's
/// images.
bool is_small_or_channels_last(const SymList& sizes, const SymList& strides, const SymList& output);

/// Weights of the four neighbours of a point at 0 <= t < 1 past the second, as PyTorch's decompositions compute them.
std::array<Node*, 4> cubic_coefficients(Builder& b, Node* t);

// The interpolations as reads at computed indices, for both overloads.
template <std::size_t rank, bool exact>
Arg decompose_nearest(DecomposeCall& c);
template <std::size_t rank>
Arg decompose_linear_interpolation(DecomposeCall& c);
Arg decompose_cubic_interpolation(DecomposeCall& c);

/// upsample_eval.cpp: the overloads that kernels run, and their gradients.
void register_upsample_kernels(OpTable& t);

}  // namespace partita
