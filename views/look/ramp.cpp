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
  QColor low = theme.dark ? QColor(0x26415f) : QColor(0xbfd5ec);
  QColor middle = theme.dark ? QColor(0x7a7f86) : QColor(0x8fa0a8);
  QColor high = theme.dark ? QColor(0xfde737) : QColor(0xb37400);
  return t < 0.5 ? mix(low, middle, t * 2) : mix(middle, high, t * 2 - 1);
}

QColor diverging(double t, const Theme& theme) {
  t = std::clamp(t, -1.0, 1.0);
  QColor none = theme.dark ? QColor(0x262a31) : QColor(0xf4f4f2);
  if (t < 0) return mix(none, theme.dark ? QColor(0x56b4e9) : QColor(0x0060a0), -t);
  return mix(none, theme.dark ? QColor(0xf0a040) : QColor(0xb85200), t);
}

QColor nan_colour(const Theme& theme) {
  return theme.dark ? QColor(0xe58fc0) : QColor(0xa8377e);
}

QColor inf_colour(const Theme& theme) {
  return theme.ink;
}

double contrast(const QColor& a, const QColor& b) {
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

QColor ink_on(const QColor& fill) {
  const QColor dark(0x14171c), light(0xffffff);
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
