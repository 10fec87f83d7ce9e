#include "views/tensor/tensor_image.h"

#include <cmath>

namespace partita::views {

TensorColours TensorColours::of(const TensorPair& pair) {
  constexpr double kCalm = 0.3;
  const double largest = std::max(std::abs(pair.low), std::abs(pair.high));
  const bool alike = pair.high - pair.low <= pair.tolerance.absolute + pair.tolerance.relative * largest;
  return {pair.low, pair.high, alike, {pair.errors.low, pair.errors.high}, pair.difference.wrong > 0 ? 1 : kCalm};
}

QColor TensorColours::value_colour(double value, const Theme& theme) const {
  if (std::isnan(value)) return nan_colour(theme);
  if (std::isinf(value)) return inf_colour(theme);
  if (alike) return sequential(0.5, theme);
  if (signed_values()) return diverging(value / std::max(-low, high), theme);
  return sequential(high > low ? (value - low) / (high - low) : 0.5, theme);
}

QColor TensorColours::colour(const GridCell& cell, Layer layer, const Theme& theme) const {
  if (layer != Layer::Error) return value_colour(layer == Layer::Expected ? cell.expected : cell.found, theme);
  bool same = cell.expected == cell.found || (std::isnan(cell.expected) && std::isnan(cell.found));
  if (same) return theme.paper;
  double off = std::abs(cell.found - cell.expected);
  if (std::isnan(off)) return nan_colour(theme);
  return std::isinf(off) ? inf_colour(theme) : error_colour(errors.at(off), theme);
}

QImage tensor_image(const Grid& grid, Layer layer, const TensorColours& colours, const Theme& theme) {
  QImage image(grid.columns, grid.rows, QImage::Format_ARGB32);
  image.fill(Qt::transparent);
  for (int r = 0; r < grid.rows; ++r) {
    auto* line = reinterpret_cast<QRgb*>(image.scanLine(r));
    for (int c = 0; c < grid.columns; ++c)
      if (const GridCell* cell = grid.at(r, c); cell->position >= 0)
        line[c] = colours.colour(*cell, layer, theme).rgb();
  }
  return image;
}

}  // namespace partita::views
