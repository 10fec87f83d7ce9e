// Compares the CUDA column of scalar_ops.def, compiled for the host, with the evaluation column.
#include <QtTest>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/loops/scalar.h"
#include "core/loops/scalar_math.h"

// Rows compare unsigned values and bools with 0 as they do any other.
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"

namespace partita::loops::device {

// What CUDA has in addition to C++.
template <class T>
T rsqrt(T a) {
  return 1 / std::sqrt(a);
}
template <class T>
T erfinv(T a) {
  return scalar_erfinv(a);
}

template <class T>
std::vector<T> samples() {
  using L = std::numeric_limits<T>;
  std::vector<T> v;
  if constexpr (std::is_same_v<T, bool>) return {false, true};
  for (int x : {0, 1, 2, 3, 7, 8, 31, 32, 63, 64, 100, -1, -2, -7, -64}) v.push_back(static_cast<T>(x));
  v.insert(v.end(), {L::lowest(), L::max(), L::min()});
  if constexpr (std::is_floating_point_v<T>)
    v.insert(v.end(), {T(-0.0), T(0.5), T(-0.5), T(1.5), T(2.5), T(-2.25), T(1e-9), T(30.7), T(1e10), L::denorm_min(),
                       L::infinity(), -L::infinity(), L::quiet_NaN()});
  std::mt19937 numbers(7);
  for (int i = 0; i < 20; ++i) v.push_back(static_cast<T>(static_cast<T>(numbers()) / T(3)));
  return v;
}

/// Calls both on every pair of samples. An integer divided by zero is an error of the evaluation and 0 on a device.
template <class T, class Result, class Evaluation, class Device>
void compare(const char* name, Evaluation evaluation, Device device) {
  const std::vector<T> values = samples<T>();
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = 0; j < values.size(); ++j) {
      const T a = values[i], b = values[j], c = values[(i + j) % values.size()];
      const auto found = static_cast<Result>(device(a, b, c));
      Result expected = 0;
      try {
        expected = static_cast<Result>(evaluation(a, b, c));
      } catch (const Raise&) {
      }
      bool same = found == expected || (found != found && expected != expected);
      if constexpr (std::is_floating_point_v<Result>)
        same = same && (found != found || std::signbit(found) == std::signbit(expected));
      if (!same)
        QFAIL(qPrintable(QString("%1(%2, %3, %4) = %5, not %6")
                             .arg(name)
                             .arg(double(a))
                             .arg(double(b))
                             .arg(double(c))
                             .arg(double(found))
                             .arg(double(expected))));
    }
}

/// Compares every row that the evaluation has for T; returns their number.
template <class T>
int compare_rows() {
  int rows = 0;
  [[maybe_unused]] constexpr bool Same = false, Bool = true;
#define SCALAR_OP(name, arity, result, weight, evaluation, cuda, ...)                                                 \
  {                                                                                                                   \
    auto eval = [](auto a, auto b, auto c) -> decltype((void)a, (void)b, (void)c, evaluation) { return evaluation; }; \
    if constexpr (std::is_invocable_v<decltype(eval), T, T, T>) {                                                     \
      compare<T, std::conditional_t<result, bool, T>>(                                                                \
          #name, eval,                                                                                                \
          []([[maybe_unused]] auto a, [[maybe_unused]] auto b, [[maybe_unused]] auto c) { return cuda; });            \
      ++rows;                                                                                                         \
    }                                                                                                                 \
  }
#include "core/loops/scalar_ops.def"
#undef SCALAR_OP
  return rows;
}

}  // namespace partita::loops::device

using namespace partita::loops;

class TestScalarDevice : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void floats() {
    constexpr int bit_operations = 6;
    QCOMPARE(device::compare_rows<float>(), static_cast<int>(ScalarOp::Const) - bit_operations);
    QCOMPARE(device::compare_rows<double>(), static_cast<int>(ScalarOp::Const) - bit_operations);
  }
  void integers() {
    const int rows = device::compare_rows<std::int64_t>();
    QVERIFY(rows > 20);
    QCOMPARE(device::compare_rows<std::int32_t>(), rows);
    QCOMPARE(device::compare_rows<std::int16_t>(), rows);
    QCOMPARE(device::compare_rows<std::int8_t>(), rows);
    QCOMPARE(device::compare_rows<std::uint64_t>(), rows);
    QCOMPARE(device::compare_rows<std::uint32_t>(), rows);
    QCOMPARE(device::compare_rows<std::uint16_t>(), rows);
    QCOMPARE(device::compare_rows<std::uint8_t>(), rows);
    QCOMPARE(device::compare_rows<bool>(), rows);
  }
};

QTEST_GUILESS_MAIN(TestScalarDevice)
#include "test_scalar_device.moc"
