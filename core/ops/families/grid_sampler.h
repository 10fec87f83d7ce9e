#pragma once
#include "core/ops/record/record.h"

namespace partita {

enum class GridMode : std::int64_t { Bilinear = 0, Nearest = 1, Bicubic = 2 };
enum class GridPadding : std::int64_t { Zeros = 0, Border = 1, Reflection = 2 };

/// What the call's interpolation_mode and padding_mode say.
GridMode grid_mode(const auto& c) {
  const std::int64_t mode = c.integer("interpolation_mode");
  if (mode < 0 || mode > 2)
    fail("grid_sampler(): expected interpolation_mode to be 0, 1 or 2, but got " + std::to_string(mode));
  return static_cast<GridMode>(mode);
}
GridPadding grid_padding(const auto& c) {
  const std::int64_t mode = c.integer("padding_mode");
  if (mode < 0 || mode > 2)
    fail("grid_sampler(): expected padding_mode to be 0, 1 or 2, but got " + std::to_string(mode));
  return static_cast<GridPadding>(mode);
}
/// grid_sampler_2d as reads at computed indices (grid_sampler_decompose.cpp).
Arg decompose_grid_sampler_2d(DecomposeCall& c);

}  // namespace partita
