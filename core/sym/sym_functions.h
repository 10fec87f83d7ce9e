#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace partita {

/// A function that symbolic expressions hold as a Call, by the name that PyTorch gives it in sympy
/// (torch/utils/_sympy/functions.py).
struct SymFunction {
  enum class Result : unsigned char {
    Integer,
    Rounded,  ///< an integer; an integer argument stays as it is
    Float,
    AsArguments  ///< a float if one of its arguments is one
  };
  std::string_view name;
  Result result;
  std::size_t arguments;
  double (*value)(std::span<const double> x);  ///< booleans are 0 and 1
};

/// Null when there is none of that name; such Calls have no value.
const SymFunction* find_sym_function(std::string_view name);

/// Python's // and % of floats, which round differently from floor(a / b). Precondition: b is not 0.
double python_floor_divide(double a, double b);
double python_remainder(double a, double b);
/// Python's round(a, digits), which looks at the decimal digits of a.
double python_round(double a, int digits);

}  // namespace partita
