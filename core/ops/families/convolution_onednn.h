#pragma once
// The products of a convolution in single precision, added up in the order of oneDNN's kernels for x86: taps in turn,
// of each tap the channels, by fused multiply-adds; the sums of every sixteen channels are added up. `large`
// and `small` are the planes at the two ends of the window, `weight` is [small's channels, large's of a group, taps].
#include "core/ops/families/convolution_geometry.h"

namespace partita::onednn {

/// small = weight * patches(large) + bias, where there is one; it comes after the first sixteen channels, or before all
/// where every channel has its own filter.
void forward(const Geometry& g, const float* large, const float* weight, const float* bias, float* small);
/// large = patches^-1(weight^T * small)
void backward_input(const Geometry& g, const float* small, const float* weight, float* large);
/// weight = sum over images of small * patches(large)^T
void backward_weight(const Geometry& g, const float* large, const float* small, float* weight);

}  // namespace partita::onednn
