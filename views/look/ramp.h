#pragma once
// Colours for numbers. Lightness follows their order, so that they can be told apart without colour vision.
#include <QColor>
#include <vector>

#include "views/look/theme.h"

namespace partita::views {

/// Near the background colour at 0, strong at 1.
QColor sequential(double t, const Theme& theme);
/// Blue at -1, near the background colour at 0, orange at 1.
QColor diverging(double t, const Theme& theme);
/// For NaNs; not a colour of the ramps.
QColor nan_colour(const Theme& theme);
/// For infinities; not a colour of the ramps.
QColor inf_colour(const Theme& theme);

/// For text on this colour: near black or near white, whichever has more contrast by WCAG 2.2.
QColor ink_on(const QColor& fill);

double contrast(const QColor& a, const QColor& b);  ///< by WCAG 2.2, at least 1
/// The colour, mixed with as much ink as text in it needs for a contrast of 4.5:1.
QColor readable_on(const QColor& paper, const QColor& colour, const QColor& ink);

/// Positive numbers on a logarithmic scale.
struct LogScale {
  double low = 0, high = 0;  ///< both 0: there was no positive number

  static LogScale of(const std::vector<double>& values);  ///< over the positive and finite ones
  bool empty() const { return !(high > 0); }
  /// 0..1; what is not positive is 0, infinities are 1.
  double at(double value) const;
  /// The powers of ten between low and high, thinned to `most`; low and high when none lies between.
  std::vector<double> ticks(int most) const;
};

}  // namespace partita::views
