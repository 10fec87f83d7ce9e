// Compares the complex functions of kernels, compiled for the host, with the C++ library's.
#include <QtTest>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <vector>

#include "core/loops/scalar_math.h"

namespace partita::loops::device {
// What CUDA has in addition to C++.
template <class T>
T rsqrt(T a) {
  return 1 / std::sqrt(a);
}
}  // namespace partita::loops::device

#include "core/loops/complex_device.h"

namespace partita::loops {
namespace {

using Number = std::complex<double>;

/// Beside numbers of many sizes, all pairs of special ones.
std::vector<Number> samples() {
  using L = std::numeric_limits<double>;
  const double special[] = {0,   -0.0, 1,     -1,    0.5,      -2,       L::infinity(),  -L::infinity(), L::quiet_NaN(),
                            1e9, 800,  1e-20, 1e300, L::max(), L::min(), L::denorm_min()};
  std::vector<Number> v;
  for (double a : special)
    for (double b : special) v.emplace_back(a, b);
  std::mt19937 numbers(7);
  std::uniform_real_distribution<double> unit(-1, 1), turn(-4, 4);
  for (int i = 0; i < 2000; ++i) {
    v.emplace_back(unit(numbers), unit(numbers));
    v.emplace_back(5 * turn(numbers), 5 * turn(numbers));
    v.emplace_back(std::ldexp(unit(numbers), static_cast<int>(40 * unit(numbers))),
                   std::ldexp(unit(numbers), static_cast<int>(40 * unit(numbers))));
    const double angle = turn(numbers);  // near the circle of radius 1, and near its poles
    v.emplace_back(std::cos(angle), std::sin(angle));
    v.emplace_back(1 + 1e-9 * unit(numbers), 1e-9 * unit(numbers));
  }
  return v;
}

/// Within `ulps` of the larger part, and of the same kind and sign where a part is no number, infinite or 0. C leaves
/// the sign open where the other part is no number.
bool same_part(double found, double expected, double other, double ulps) {
  if (std::isnan(expected)) return std::isnan(found);
  const bool sign = std::isnan(other) || std::signbit(found) == std::signbit(expected);
  if (std::isinf(expected)) return std::isinf(found) && sign;
  if (expected == 0 && found == 0) return sign;
  const double size = std::fmax(std::fabs(expected), std::fabs(other));
  return std::fabs(found - expected) <=
         ulps * std::max(size * std::numeric_limits<double>::epsilon(), std::numeric_limits<double>::min());
}

struct Function {
  const char* name;
  Number (*expected)(Number);
  device::Complex<double> (*found)(device::Complex<double>);
};
const Function functions[] = {
#define ROW(name)                                          \
  {#name, [](Number z) -> Number { return std::name(z); }, \
   [](device::Complex<double> z) -> device::Complex<double> { return device::name(z); }}
    ROW(exp),
    ROW(log),
    ROW(sqrt),
    ROW(sin),
    ROW(cos),
    ROW(tan),
    ROW(sinh),
    ROW(cosh),
    ROW(tanh),
    ROW(asinh),
    ROW(acosh),
    ROW(asin),
    ROW(acos),
    ROW(atan),
    ROW(atanh),
    ROW(log10),
#undef ROW
#define ROW(name, scalar)                               \
  {#name, [](Number z) -> Number { return scalar(z); }, \
   [](device::Complex<double> z) -> device::Complex<double> { return device::name(z); }}
    ROW(exp2, scalar_exp2),
    ROW(expm1, scalar_expm1),
    ROW(log2, scalar_log2),
    ROW(log1p, scalar_log1p),
    ROW(sign_of, scalar_sign),
    ROW(conjugate, scalar_conj),
    ROW(magnitude, scalar_abs),
#undef ROW
};

}  // namespace

class TestComplexDevice : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void functions_data() {
    QTest::addColumn<int>("row");
    for (int i = 0; i < static_cast<int>(std::size(loops::functions)); ++i)
      QTest::newRow(loops::functions[i].name) << i;
  }
  void functions() {
    QFETCH(int, row);
    const Function& f = loops::functions[row];
    int differ = 0;
    for (const Number z : samples()) {
      const auto found = f.found({z.real(), z.imag()});
      const Number expected = f.expected(z);
      constexpr double ulps = 8;
      if (same_part(found.re, expected.real(), expected.imag(), ulps) &&
          same_part(found.im, expected.imag(), expected.real(), ulps))
        continue;
      ++differ;
      qWarning("%s(%.17g, %.17g) = (%.17g, %.17g), not (%.17g, %.17g)", f.name, z.real(), z.imag(), found.re, found.im,
               expected.real(), expected.imag());
    }
    QCOMPARE(differ, 0);
  }

  /// As PyTorch's c10::complex, the interpreter too: by 0 each part on its own, and infinite parts as they multiply.
  void products_and_quotients() {
    constexpr double inf = std::numeric_limits<double>::infinity();
    const Number by_zero = scalar_div(Number(3, -4), Number(0, 0));
    QCOMPARE(by_zero.real(), inf);
    QCOMPARE(by_zero.imag(), -inf);
    const Number infinite = scalar_div(Number(inf, inf), Number(2, 0));
    QVERIFY(std::isnan(infinite.real()) && std::isnan(infinite.imag()));
    const Number product = scalar_mul(Number(-3, 0), Number(inf, inf));
    QVERIFY(std::isnan(product.real()) && std::isnan(product.imag()));
    const Number plain = scalar_div(Number(1, 2), Number(3, -4));
    QVERIFY(std::abs(plain - Number(-0.2, 0.4)) < 1e-15);
  }
};

}  // namespace partita::loops

QTEST_GUILESS_MAIN(partita::loops::TestComplexDevice)
#include "test_complex_device.moc"
