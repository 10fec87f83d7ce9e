// torch._dynamo.utils.same(): expectations are what PyTorch 2.13 returns for these values.
#include <QtTest>
#include <cmath>

#include "core/compare/torch_same.h"
#include "tests/support/values.h"

namespace partita {
namespace {

using testing::f32;
using testing::tensor;

}  // namespace

class TestSame : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void within_tolerance() { QVERIFY(!torch_difference(f32({2}, {1, 2}), f32({2}, {1.0005, 2}), Value())); }

  void outside_without_baseline() {
    QCOMPARE(torch_difference(f32({2}, {1, 2}), f32({2}, {1.01, 2}), Value()).value(), std::string("values"));
  }

  void within_three_times_the_distance_of_the_reference() {
    // rmse(exact, reference) = 0.1, rmse(exact, result) = 0.25 <= 3 * 0.1 + 1e-4
    const auto reference = f32({1}, {10.1}), result = f32({1}, {9.75});
    QVERIFY(!torch_difference(reference, result, tensor(DType::Float64, {1}, {10})));
    QVERIFY(torch_difference(reference, f32({1}, {9.6}), tensor(DType::Float64, {1}, {10})));
    QVERIFY2(torch_difference(reference, result, f32({1}, {10})), "the baseline is not in double");
  }

  void a_thousand_elements_allow_twice_only() {
    const std::vector<double> exact(1000, 10), reference(1000, 10.1), result(1000, 9.75);
    QVERIFY(torch_difference(f32({1000}, reference), f32({1000}, result), tensor(DType::Float64, {1000}, exact)));
  }

  void nan_where_the_reference_has_none() {
    QCOMPARE(torch_difference(f32({2}, {1, 2}), f32({2}, {NAN, 2}), tensor(DType::Float64, {2}, {1, 2})).value(),
             std::string("nan"));
    QVERIFY(!torch_difference(f32({2}, {NAN, 2}), f32({2}, {NAN, 2}), Value()));
  }

  void better_than_a_reference_with_nan() {
    QVERIFY(!torch_difference(f32({2}, {NAN, 2}), f32({2}, {1, 2}), tensor(DType::Float64, {2}, {1, 2})));
  }

  void kind_dtype_and_sizes() {
    QCOMPARE(torch_difference(f32({1}, {1}), Value(), Value()).value(), std::string("kind"));
    QCOMPARE(torch_difference(f32({1}, {1}), tensor(DType::Float64, {1}, {1}), Value()).value(), std::string("dtype"));
    QCOMPARE(torch_difference(f32({2}, {1, 1}), f32({1, 2}, {1, 1}), Value()).value(), std::string("sizes"));
    QVERIFY(torch_difference(Value(std::int64_t{3}), Value(std::int64_t{4}), Value()));
    QVERIFY(!torch_difference(Value(std::int64_t{3}), Value(std::int64_t{3}), Value()));
  }
};

}  // namespace partita

QTEST_GUILESS_MAIN(partita::TestSame)
#include "test_same.moc"
