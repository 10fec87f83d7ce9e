#pragma once
// Colours of numbers, told apart without colour vision as well: lightness carries the order.
#include <QColor>
#include <QString>
#include <vector>

#include "views/look/theme.h"

namespace partita::views {

/// Near the paper at 0, strong at 1.
QColor sequential(double t, const Theme& theme);
/// Blue at -1, near the paper at 0, orange at 1.
QColor diverging(double t, const Theme& theme);
/// Of what is no number; on no ramp.
QColor nan_colour(const Theme& theme);
/// Of infinities; on no ramp.
QColor inf_colour(const Theme& theme);

/// Of text on a filled card: near black or white, whichever has more contrast (WCAG 2.2's ratio).
QColor ink_on(const QColor& fill);

/// Positive numbers on a logarithmic scale.
struct LogScale {
  double low = 0, high = 0;  ///< both 0: there is no positive number

  static LogScale of(const std::vector<double>& values);  ///< over the positive and finite ones
  bool empty() const { return !(high > 0); }
  /// 0..1; what is not positive is 0, infinities are 1.
  double at(double value) const;
  /// The powers of ten between low and high, thinned to `most`; low and high when none lies between.
  std::vector<double> ticks(int most) const;
};

}  // namespace partita::views
