#include "core/sym/sym_functions.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include <fmt/format.h>

#include "core/sym/integer.h"

namespace partita {
namespace {

using Result = SymFunction::Result;
using Values = std::span<const double>;

template <double (*f)(double)>
double of_one(Values x) {
  return f(x[0]);
}

double of_integers(Values x, auto f) {
  const auto a = as_integer(x[0]), b = as_integer(x[1]);
  return a && b ? static_cast<double>(f(*a, *b)) : std::nan("");
}

constexpr SymFunction functions[] = {
    {"ToFloat", Result::Float, 1, [](Values x) { return x[0]; }},
    {"TruncToFloat", Result::Float, 1, of_one<std::trunc>},
    {"TruncToInt", Result::Rounded, 1, of_one<std::trunc>},
    {"FloorToInt", Result::Rounded, 1, of_one<std::floor>},
    {"CeilToInt", Result::Rounded, 1, of_one<std::ceil>},
    {"RoundToInt", Result::Rounded, 1, of_one<std::nearbyint>},
    {"RoundDecimal", Result::Float, 2, [](Values x) { return python_round(x[0], static_cast<int>(x[1])); }},
    {"Abs", Result::AsArguments, 1, of_one<std::fabs>},
    {"Where", Result::AsArguments, 3, [](Values x) { return x[0] != 0 ? x[1] : x[2]; }},
    {"LShift", Result::Integer, 2, [](Values x) { return x[0] * std::exp2(x[1]); }},
    {"RShift", Result::Integer, 2, [](Values x) { return std::floor(x[0] / std::exp2(x[1])); }},
    {"BitwiseFn_bitwise_and", Result::Integer, 2, [](Values x) { return of_integers(x, std::bit_and<>()); }},
    {"BitwiseFn_bitwise_or", Result::Integer, 2, [](Values x) { return of_integers(x, std::bit_or<>()); }},
    {"BitwiseFn_bitwise_xor", Result::Integer, 2, [](Values x) { return of_integers(x, std::bit_xor<>()); }},
    {"gcd", Result::Integer, 2, [](Values x) { return of_integers(x, [](auto a, auto b) { return std::gcd(a, b); }); }},
    {"OpaqueUnaryFn_sqrt", Result::Float, 1, of_one<std::sqrt>},
    {"OpaqueUnaryFn_exp", Result::Float, 1, of_one<std::exp>},
    {"OpaqueUnaryFn_log", Result::Float, 1, of_one<std::log>},
    {"OpaqueUnaryFn_log2", Result::Float, 1, of_one<std::log2>},
    {"OpaqueUnaryFn_sin", Result::Float, 1, of_one<std::sin>},
    {"OpaqueUnaryFn_cos", Result::Float, 1, of_one<std::cos>},
    {"OpaqueUnaryFn_tan", Result::Float, 1, of_one<std::tan>},
    {"OpaqueUnaryFn_sinh", Result::Float, 1, of_one<std::sinh>},
    {"OpaqueUnaryFn_cosh", Result::Float, 1, of_one<std::cosh>},
    {"OpaqueUnaryFn_tanh", Result::Float, 1, of_one<std::tanh>},
    {"OpaqueUnaryFn_asin", Result::Float, 1, of_one<std::asin>},
    {"OpaqueUnaryFn_acos", Result::Float, 1, of_one<std::acos>},
    {"OpaqueUnaryFn_atan", Result::Float, 1, of_one<std::atan>},
    {"OpaqueUnaryFn_asinh", Result::Float, 1, of_one<std::asinh>},
};

}  // namespace

const SymFunction* find_sym_function(std::string_view name) {
  const auto it = std::ranges::find(functions, name, &SymFunction::name);
  return it == std::end(functions) ? nullptr : it;
}

double python_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (b < 0) != (rest < 0) ? rest + b : rest;
}

double python_floor_divide(double a, double b) {
  double rest = std::fmod(a, b), quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double below = std::floor(quotient);
  return quotient - below > 0.5 ? below + 1 : below;
}

double python_round(double a, int digits) {
  constexpr int most = 323;  // digits behind the point that a double may have
  if (!std::isfinite(a) || digits > most) return a;
  if (digits < -most) return std::copysign(0.0, a);
  if (digits >= 0) return std::strtod(fmt::format("{:.{}f}", a, digits).c_str(), nullptr);
  const double unit = std::pow(10.0, -digits);
  return std::nearbyint(a / unit) * unit;
}

}  // namespace partita
