#include "views/look/ramp.h"

#include <algorithm>
#include <cmath>

namespace partita::views {
namespace {

QColor mix(const QColor& a, const QColor& b, double t) {
  auto between = [t](int x, int y) { return static_cast<int>(std::lround(x + (y - x) * t)); };
  return {between(a.red(), b.red()), between(a.green(), b.green()), between(a.blue(), b.blue())};
}

// By WCAG 2.2.
double luminance(const QColor& c) {
  const auto linear = [](double x) { return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
}

}  // namespace

QColor sequential(double t, const Theme& theme) {
  t = std::clamp(t, 0.0, 1.0);
  return t < 0.5 ? mix(theme.low, theme.middle, t * 2) : mix(theme.middle, theme.high, t * 2 - 1);
}

QColor diverging(double t, const Theme& theme) {
  t = std::clamp(t, -1.0, 1.0);
  return t < 0 ? mix(theme.calm, theme.below, -t) : mix(theme.calm, theme.above, t);
}

QColor nan_colour(const Theme& theme) {
  return theme.not_a_number;
}

QColor inf_colour(const Theme& theme) {
  return theme.ink;
}

double contrast(const QColor& a, const QColor& b) {
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

QColor ink_on(const QColor& fill) {
  const QColor &dark = Theme::night().paper, &light = Theme::light().raised;
  return contrast(dark, fill) > contrast(light, fill) ? dark : light;
}

QColor readable_on(const QColor& paper, const QColor& colour, const QColor& ink) {
  constexpr double kEnough = 4.5, kStep = 0.1;
  for (double share = 0; share < 1; share += kStep)
    if (const QColor mixed = mix(colour, ink, share); contrast(mixed, paper) >= kEnough) return mixed;
  return ink;
}

LogScale LogScale::of(const std::vector<double>& values) {
  LogScale scale{INFINITY, 0};
  for (double v : values)
    if (v > 0 && std::isfinite(v)) scale.low = std::min(scale.low, v), scale.high = std::max(scale.high, v);
  return scale.high > 0 ? scale : LogScale{};
}

double LogScale::at(double value) const {
  if (!(value > 0) || empty()) return 0;
  if (high <= low) return 1;
  return std::clamp(std::log(value / low) / std::log(high / low), 0.0, 1.0);
}

std::vector<double> LogScale::ticks(int most) const {
  if (empty()) return {};
  constexpr double kSlack = 1e-9;
  int first = static_cast<int>(std::ceil(std::log10(low) - kSlack));
  int last = static_cast<int>(std::floor(std::log10(high) + kSlack));
  if (last < first) return high > low ? std::vector{low, high} : std::vector{high};
  int step = (last - first) / std::max(1, most) + 1;
  std::vector<double> ticks;
  for (int e = first; e <= last; e += step) ticks.push_back(std::pow(10, e));
  return ticks;
}

}  // namespace partita::views
