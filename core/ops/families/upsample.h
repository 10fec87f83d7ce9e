#pragma once
#include <array>

#include "core/ops/record/record.h"

namespace partita {

/// How an interpolation chooses the inputs that an output element reads.
enum class Resampling : unsigned char {
  Nearest,
  NearestExact,
  Linear,
  Cubic,
  LinearAntialias,
  CubicAntialias,
  LanczosAntialias
};

/// The spatial sizes of the output, and the scale given for each (0: none), which the graph may compute.
struct ResampleTarget {
  SymList sizes, scales;
};
/// Fails as PyTorch does when the sizes of an interpolation are not valid: `input` [n, c, ...], `output` [...].
void check_resample_sizes(const FakeCall& c, const SymList& input, const SymList& output, std::size_t rank);
/// Reads the target of either overload, and checks its sizes: output_size or scale_factors (.vec), or output_size and a
/// scale argument for each dimension. `input` has a batch dimension, channels, and `rank` spatial dimensions.
ResampleTarget resample_target(const FakeCall& c, const TensorMeta& input, std::size_t rank);

/// PyTorch has two kinds of kernels: a general one, and one for images that are small or have their channels last (and
/// more than three channels). They round weights differently, and nearest neighbours of the second kind ignore a scale
/// between equal sizes or to twice the size. Takes the sizes of the input [n, c, ...] and the spatial ones of the
/// output.
bool is_small_or_channels_last(const FakeCall& c, const SymList& sizes, const SymList& strides, const SymList& output);

/// Weights of the four neighbours of a point at distance 0 <= t < 1 from the second, as PyTorch's decompositions
/// compute them.
std::array<Node*, 4> cubic_coefficients(Builder& b, Node* t);

// The interpolations decomposed to reads at computed indices, for both overloads.
Arg interpolate_nearest(DecomposeCall& c, std::size_t rank, bool exact);
Arg interpolate_linear(DecomposeCall& c, std::size_t rank);
Arg interpolate_cubic(DecomposeCall& c);
/// The overload with sizes and scales in the place of the one with scale factors.
Arg interpolate_by_sizes(DecomposeCall& c, std::size_t rank);

}  // namespace partita
