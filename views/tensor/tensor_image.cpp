#include "views/tensor/tensor_image.h"

#include <algorithm>
#include <cmath>

namespace partita::views {

TensorColours TensorColours::of(std::span<const TensorPair* const> pairs) {
  constexpr double kCalm = 0.3;
  TensorColours out{pairs.front()->low, pairs.front()->high, true, {}, kCalm};
  for (const TensorPair* pair : pairs) {
    out.low = std::min(out.low, pair->low);
    out.high = std::max(out.high, pair->high);
    if (pair->difference.wrong > 0) out.most = 1;
    if (pair->errors.counts.empty()) continue;
    out.errors.low = out.errors.empty() ? pair->errors.low : std::min(out.errors.low, pair->errors.low);
    out.errors.high = std::max(out.errors.high, pair->errors.high);
  }
  const Tolerance& tolerance = pairs.front()->tolerance;
  const double largest = std::max(std::abs(out.low), std::abs(out.high));
  out.alike = out.high - out.low <= tolerance.absolute + tolerance.relative * largest;
  return out;
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
