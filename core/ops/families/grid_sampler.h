#pragma once
#include "core/ops/record/record.h"

namespace partita {

enum class GridMode : std::int64_t { Bilinear = 0, Nearest = 1, Bicubic = 2 };
enum class GridPadding : std::int64_t { Zeros = 0, Border = 1, Reflection = 2 };

/// What the call's interpolation_mode and padding_mode say.
GridMode grid_mode(const FakeCall& c);
GridPadding grid_padding(const FakeCall& c);
/// grid_sampler_2d as reads at computed indices (grid_sampler_decompose.cpp).
Arg decompose_grid_sampler_2d(DecomposeCall& c);

}  // namespace partita
