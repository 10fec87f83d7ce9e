#include "core/base/number_text.h"

#include <cmath>

#include <fmt/format.h>

namespace partita {
namespace {

/// Three digits.
int decimals_of(double value) {
  return value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
}

}  // namespace

std::string bytes_text(double bytes) {
  if (bytes < 0) return "-" + bytes_text(-bytes);
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  static constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = bytes / 1024;
  int unit = 0;
  while (value >= 1023.5 && unit < 3) value /= 1024, ++unit;
  return fmt::format("{:.{}f} {}", value, decimals_of(value), units[unit]);
}

std::string seconds_text(double seconds) {
  struct Unit {
    double size;
    const char* name;
  };
  static constexpr Unit units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}};
  Unit unit = units[3];
  for (Unit u : units)
    if (seconds >= u.size * 0.9995) {
      unit = u;
      break;
    }
  const double value = seconds / unit.size;
  return fmt::format("{:.{}f} {}", value, decimals_of(value), unit.name);
}

std::string error_text(double error) {
  if (std::isnan(error)) return "nan";
  if (std::isinf(error)) return "inf";
  if (error == 0) return "0";
  int exponent = static_cast<int>(std::floor(std::log10(std::abs(error))));
  std::string mantissa = fmt::format("{:.1f}", error / std::pow(10, exponent));
  if (mantissa == "10.0") mantissa = "1.0", ++exponent;
  return fmt::format("{}e{}", mantissa, exponent);
}

std::string amount_text(double n) {
  static constexpr const char* units[] = {"", " k", " M", " G", " T"};
  int unit = 0;
  for (; n >= 1000 && unit < 4; n /= 1000) ++unit;
  return fmt::format("{:.3g}{}", n, units[unit]);
}

std::string count_text(std::int64_t n, std::string_view singular, std::string_view plural) {
  if (n == 1) return fmt::format("1 {}", singular);
  return plural.empty() ? fmt::format("{} {}s", n, singular) : fmt::format("{} {}", n, plural);
}

}  // namespace partita
