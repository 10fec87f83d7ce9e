#pragma once
// Draws a slice of a tensor pair as coloured cells.
#include <QImage>

#include "views/look/ramp.h"
#include "views/tensor/tensor_pair.h"

namespace partita::views {

enum class Layer : unsigned char { Expected, Found, Error };

/// Maps numbers to colours by the range of whole pairs, so that slices and sides can be compared.
struct TensorColours {
  double low = 0, high = 0;  ///< of the values
  bool alike = false;        ///< all values are within the tolerance of one another: differences say nothing
  LogScale errors;
  double most = 1;  ///< where the largest error is on the ramp: its alarming half is for errors beyond the tolerance

  static TensorColours of(std::span<const TensorPair* const> pairs);
  bool signed_values() const { return low < 0 && high > 0; }
  QColor colour(const GridCell& cell, Layer layer, const Theme& theme) const;
  QColor value_colour(double value, const Theme& theme) const;
  /// Of an error at this share of the scale.
  QColor error_colour(double share, const Theme& theme) const { return sequential(most * share, theme); }
};

/// One pixel per cell; transparent where there is no element.
QImage tensor_image(const Grid& grid, Layer layer, const TensorColours& colours, const Theme& theme);

}  // namespace partita::views
