// Pointwise operators where rounding, signs, NaN and overflow matter. Expected values are PyTorch 2.13's.
#include <QTest>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "core/ops/record/record.h"

using namespace partita;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Tensor vector_of(DType dtype, const std::vector<double>& values) {
  Tensor t = *Tensor::empty(DType::Float64, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.as<double>());
  return *t.to(dtype);
}

struct Row {
  const char* op;
  DType dtype;
  std::vector<std::vector<double>> inputs;
  std::vector<double> expected;
};

const Row rows[] = {
    {"aten.floor_divide.default", DType::Int64, {{7, -7, 7, -7}, {2, 2, -2, -2}}, {3, -4, -4, 3}},
    {"aten.remainder.Tensor", DType::Int64, {{7, -7, 7, -7}, {3, 3, -3, -3}}, {1, 2, -2, -1}},
    {"aten.fmod.Tensor", DType::Int64, {{7, -7, 7, -7}, {3, 3, -3, -3}}, {1, -1, 1, -1}},
    {"aten.remainder.Tensor", DType::Float32, {{5.5, -5.5, 1}, {2, 2, -inf}}, {1.5, 0.5, -inf}},
    {"aten.round.default", DType::Float32, {{0.5, 1.5, 2.5, -0.5, -1.5}}, {0, 2, 2, 0, -2}},
    {"aten.maximum.default", DType::Float32, {{nan, 1, -inf}, {1, nan, 0}}, {nan, nan, 0}},
    {"aten.fmax.default", DType::Float32, {{nan, 1, -inf}, {1, nan, 0}}, {1, 1, 0}},
    {"aten.add.Tensor", DType::Int8, {{127, -128}, {1, -1}}, {-128, 127}},
    {"aten.neg.default", DType::Int8, {{-128, 5}}, {-128, -5}},
    {"aten.relu.default", DType::Float32, {{nan, -1, inf}}, {nan, 0, inf}},
    {"aten.sign.default", DType::Float32, {{nan, -2, 0}}, {0, -1, 0}},
    {"aten.bitwise_left_shift.Tensor", DType::Int32, {{1, 1, -1}, {3, 32, 1}}, {8, 0, -2}},
    {"aten.bitwise_right_shift.Tensor", DType::Int32, {{8, -8, -8}, {2, 2, 40}}, {2, -2, -1}},
    {"aten.xlogy.Tensor", DType::Float32, {{0, 0, 0}, {0, nan, -1}}, {0, nan, 0}},
    {"aten.logaddexp.default", DType::Float32, {{inf, -inf}, {inf, -inf}}, {inf, -inf}},
    {"aten.gcd.default", DType::Int64, {{12, -8, 0}, {18, 6, 5}}, {6, 2, 5}},
    {"aten.lcm.default", DType::Int64, {{4, 0, 3}, {6, 0, -2}}, {12, 0, 6}},
    {"aten.gcd.default", DType::Int8, {{5, 0, -128}, {-128, -128, 0}}, {-1, -128, -128}},
    {"aten.lcm.default", DType::Int8, {{5, 0, 100}, {-128, -128, 99}}, {-128, 0, -84}},
    {"aten.special_zeta.default", DType::Float64, {{1, 0.5, 2}, {2, 2, -1}}, {inf, nan, inf}},
    {"aten.igamma.default", DType::Float64, {{0, 1, -1, inf}, {2, 0, 1, inf}}, {1, 0, nan, nan}},
    {"aten.special_bessel_y0.default", DType::Float32, {{0, -1}}, {-inf, nan}},
    {"aten.special_i1e.default", DType::Float32, {{0, inf, nan}}, {0, 0, nan}},
    {"aten.special_i0e.default",
     DType::BFloat16,
     {{-8.5, -1.765625, -4.3125, -2.40625, -7.9375}},
     {0.1396484375, 0.330078125, 0.1982421875, 0.275390625, 0.14453125}},
    {"aten.special_ndtri.default", DType::Float64, {{0, 0.5, 1, 2}}, {-inf, 0, inf, nan}},
    {"aten.special_hermite_polynomial_h.default", DType::Float64, {{2, 2, 2}, {3, -1, 0}}, {40, 0, 1}},
    {"aten.special_shifted_chebyshev_polynomial_u.default", DType::Float64, {{1, 0, 1.5}, {4, 3, 2}}, {5, -4, 15}},
    {"aten.isclose.default", DType::Float32, {{1, nan, inf, 1}, {1.000001, nan, inf, 1.1}}, {1, 0, 1, 0}},
    {"aten.float_power.Tensor_Tensor", DType::Int64, {{2, 3}, {-1, 2}}, {0.5, 9}},
    {"aten.trapezoid.x", DType::Float32, {{1, 2, 3}, {0, 1, 3}}, {6.5}},
    {"aten.cumulative_trapezoid.dx", DType::Float32, {{1, 2, 3}}, {1.5, 4}},
    {"aten.nanmean.default", DType::Float32, {{1, nan, 3}}, {2}},
    {"aten.kron.default", DType::Float32, {{1, 2}, {3, 4}}, {3, 4, 6, 8}},
    {"aten.linalg_vecdot.default", DType::Float32, {{1, 2}, {3, 4}}, {11}},
    {"aten.linalg_vander.default", DType::Float64, {{2, 3}}, {1, 2, 1, 3}},
    {"aten.fft_fftshift.default", DType::Float32, {{0, 1, 2, 3, 4}}, {3, 4, 0, 1, 2}},
    {"aten.diagflat.default", DType::Float32, {{1, 2}}, {1, 0, 0, 2}},
    {"aten.hinge_embedding_loss.default", DType::Float32, {{2, 0.5}, {1, -1}}, {1.25}},
    {"aten.hypot.default", DType::Float32, {{3, 0, inf}, {4, 0, nan}}, {5, 0, inf}},
};

}  // namespace

class SpecialValues : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// A number that becomes a bool is true unless all of it is 0, whatever its kind.
  void bools_are_filled_with_numbers_of_any_kind() {
    const Tensor self = vector_of(DType::Bool, {0, 1, 0}), mask = vector_of(DType::Bool, {1, 1, 0});
    const std::vector<std::pair<Value, bool>> numbers = {{Value(std::complex<double>(0, 1)), true},
                                                         {Value(std::complex<double>(0, 0)), false},
                                                         {Value(0.5), true},
                                                         {Value(std::int64_t{0}), false}};
    for (const auto& [number, becomes] : numbers) {
      const auto found = evaluate(Op::torch("aten.masked_fill.Scalar"), {self, mask, number}, {});
      QVERIFY2(found, found ? "" : found.error().line().c_str());
      const Tensor& t = *found->get<Tensor>();
      QCOMPARE(t.item_as_double(0) != 0, becomes);
      QCOMPARE(t.item_as_double(1) != 0, becomes);
      QCOMPARE(t.item_as_double(2), 0.0);
    }
  }

  void evaluates_data() {
    QTest::addColumn<int>("index");
    for (std::size_t i = 0; i < std::size(rows); ++i) QTest::addRow("%s %zu", rows[i].op, i) << static_cast<int>(i);
  }

  void evaluates() {
    QFETCH(int, index);
    const Row& row = rows[index];
    std::vector<Value> args;
    for (const auto& values : row.inputs) args.push_back(vector_of(row.dtype, values));
    Result<Value> result = evaluate(Op::torch(row.op), std::move(args), {});
    QVERIFY2(bool(result), result ? "" : result.error().line().c_str());
    const Tensor& found = *result->get<Tensor>();
    QCOMPARE(found.numel(), static_cast<std::int64_t>(row.expected.size()));
    for (std::size_t i = 0; i < row.expected.size(); ++i) {
      double value = found.item_as_double(static_cast<std::int64_t>(i)), expected = row.expected[i];
      bool same = std::isnan(expected) ? std::isnan(value) : value == expected;
      QVERIFY2(same, qPrintable(QString("element %1: %2, expected %3").arg(i).arg(value).arg(expected)));
    }
  }

  /// 256 and 1 is 256 in bfloat16: what is added up must not be rounded in between.
  void sums_at_one_index_are_rounded_once() {
    const Tensor zero = vector_of(DType::BFloat16, {0}),
                 ones = vector_of(DType::BFloat16, std::vector<double>(1000, 1)),
                 index = vector_of(DType::Int64, std::vector<double>(1000, 0));
    const auto sum = [](const char* op, std::vector<Value> args) {
      Result<Value> result = evaluate(Op::torch(op), std::move(args), {});
      return result ? result->get<Tensor>()->item_as_double() : std::numeric_limits<double>::quiet_NaN();
    };
    QCOMPARE(sum("aten.index_put.default", {zero, ValueList{index}, ones, true}), 1000.0);
    QCOMPARE(sum("aten.index_add.default", {zero, std::int64_t{0}, index, ones}), 1000.0);
    QCOMPARE(sum("aten.scatter_add.default", {zero, std::int64_t{0}, index, ones}), 1000.0);
    QCOMPARE(sum("aten.embedding_dense_backward.default",
                 {ones.view_as({1000, 1}, {1, 1}, 0), index, std::int64_t{1}, std::int64_t{-1}, false}),
             1000.0);
  }

  /// Powers of ten may be infinite, and a sign cannot always be changed. Values are PyTorch's.
  void rounds_to_any_decimals() {
    for (const std::int64_t decimals : {INT64_MIN, std::int64_t{-400}, std::int64_t{400}, INT64_MAX}) {
      Result<Value> result =
          evaluate(Op::torch("aten.round.decimals"), {vector_of(DType::Float64, {1.5, 0})}, {{"decimals", decimals}});
      QVERIFY2(bool(result), result ? "" : result.error().line().c_str());
      for (std::int64_t i = 0; i < 2; ++i) QVERIFY(std::isnan(result->get<Tensor>()->item_as_double(i)));
    }
  }

  void infinitiesMakeSingularValuesNotNumbers() {
    Tensor m = *Tensor::zeros(DType::Float64, {2, 2});
    m.as<double>()[0] = inf;
    Result<Value> result = evaluate(Op::torch("aten._linalg_svd.default"), {m}, {});
    QVERIFY2(bool(result), result ? "" : result.error().message.c_str());
    for (const Value& part : *result->get<ValueList>())
      for (std::int64_t i = 0; i < part.get<Tensor>()->numel(); ++i)
        QVERIFY(std::isnan(part.get<Tensor>()->item_as_double(i)));
    m.as<double>()[0] = std::numeric_limits<double>::quiet_NaN();
    result = evaluate(Op::torch("aten._linalg_svd.default"), {m}, {});
    QVERIFY(!result);
    QVERIFY2(result.error().message.find("non-finite") != std::string::npos, result.error().message.c_str());
  }

  void complexNumbersOfHalvesAreRefused() {
    for (const char* op : {"aten.logaddexp.default", "aten.special_chebyshev_polynomial_t.default"}) {
      Result<Value> result =
          evaluate(Op::torch(op), {vector_of(DType::Float16, {1}), *Tensor::scalar(DType::Complex64, 1)}, {});
      QVERIFY(!result);
      QCOMPARE(result.error().code, std::string("ops.dtype"));
    }
  }

  /// Special functions have no complex kernels, but the angle has one.
  void anglesAreOfComplexNumbers() {
    Tensor z = *Tensor::zeros(DType::Complex128, {1});
    z.as<std::complex<double>>()[0] = {-1, -1};
    const Result<Value> angle = evaluate(Op::torch("aten.angle.default"), {z}, {});
    QVERIFY2(bool(angle), angle ? "" : angle.error().message.c_str());
    QCOMPARE(angle->get<Tensor>()->item_as_double(), std::atan2(-1.0, -1.0));
    const Result<Value> lgamma = evaluate(Op::torch("aten.mvlgamma.default"), {z, std::int64_t{2}}, {});
    QVERIFY(!lgamma);
    QCOMPARE(lgamma.error().code, std::string("ops.dtype"));
  }

  /// Squares of floats overflow and underflow as PyTorch's do, even where the norm itself would not.
  void normsAreOfFloats() {
    for (const auto& [value, norm] : {std::pair(1e25, inf), std::pair(1e-25, 0.0)}) {
      const Result<Value> of_float =
          evaluate(Op::torch("aten.linalg_vector_norm.default"), {*Tensor::scalar(DType::Float32, value)}, {});
      QVERIFY(bool(of_float));
      QCOMPARE(of_float->get<Tensor>()->item_as_double(), norm);
      const Result<Value> of_double =
          evaluate(Op::torch("aten.linalg_vector_norm.default"), {*Tensor::scalar(DType::Float64, value)}, {});
      QCOMPARE(of_double->get<Tensor>()->item_as_double(), value);
    }
  }

  void equalNumbersDoNotVary() {
    Result<Value> result =
        evaluate(Op::torch("aten.var.correction"), {vector_of(DType::Float64, std::vector<double>(33, 0.1234567))}, {});
    QVERIFY2(bool(result), result ? "" : result.error().message.c_str());
    QCOMPARE(result->get<Tensor>()->item_as_double(), 0.0);
  }

  void aMeanOfNoClassesIsNotANumber() {
    const Tensor none = *Tensor::empty(DType::Float32, {3, 0});
    Result<Value> result = evaluate(Op::torch("aten.cross_entropy_loss.default"), {none, none}, {});
    QVERIFY2(bool(result), result ? "" : result.error().message.c_str());
    QVERIFY(std::isnan(result->get<Tensor>()->item_as_double()));
  }

  void integersDividedByZeroAreRefused() {
    Result<Value> result = evaluate(Op::torch("aten.floor_divide.default"),
                                    {vector_of(DType::Int64, {1}), vector_of(DType::Int64, {0})}, {});
    QVERIFY(!result);
    QCOMPARE(result.error().code, std::string("ops.zero_division"));
  }

  void whatIsFilledKeepsItsDtype() {
    Tensor self = *Tensor::empty(DType::Int64, {2});
    self.as<std::int64_t>()[0] = self.as<std::int64_t>()[1] = (std::int64_t{1} << 53) + 1;
    Result<Value> result = evaluate(Op::torch("aten.masked_fill.Tensor"),
                                    {self, vector_of(DType::Bool, {0, 1}), *Tensor::scalar(DType::Float32, 2.5)}, {});
    QVERIFY2(bool(result), result ? "" : result.error().message.c_str());
    const Tensor& found = *result->get<Tensor>();
    QCOMPARE(found.dtype, DType::Int64);
    QCOMPARE(found.as<std::int64_t>()[0], self.as<std::int64_t>()[0]);
    QCOMPARE(found.as<std::int64_t>()[1], std::int64_t{2});
  }

  void aNumberIsAnIndexOfALine() {
    Result<Value> result =
        evaluate(Op::torch("aten.gather.default"),
                 {vector_of(DType::Float32, {1, 2, 3}), std::int64_t{0}, *Tensor::scalar(DType::Int64, 2)}, {});
    QVERIFY2(bool(result), result ? "" : result.error().message.c_str());
    QCOMPARE(result->get<Tensor>()->item_as_double(), 3.0);
  }

  void anEmptyListOfDimsReducesNothing() {
    Result<Value> result = evaluate(Op::torch("aten.any.dims"), {vector_of(DType::Float32, {0, 2}), ValueList{}}, {});
    QVERIFY2(bool(result), result ? "" : result.error().message.c_str());
    QCOMPARE(result->get<Tensor>()->sizes, Sizes({2}));
    QCOMPARE(result->get<Tensor>()->item_as_double(1), 1.0);
  }

  void floatsOutOfRangeBecomeTheLeastInteger() {
    const Tensor t = vector_of(DType::Float64, {-inf, inf, 3e9, -1.5});
    const std::vector<std::pair<DType, std::vector<double>>> expected = {
        {DType::Int32, {-2147483648.0, -2147483648.0, -2147483648.0, -1}},
        {DType::Int16, {0, 0, 0, -1}},
        {DType::Int64, {-0x1p63, -0x1p63, 3e9, -1}}};
    for (const auto& [dtype, values] : expected)
      for (std::size_t i = 0; i < values.size(); ++i)
        QCOMPARE(t.to(dtype)->item_as_double(static_cast<std::int64_t>(i)), values[i]);
  }

  void listsAreWrittenItemByItem() {
    Tensor a = vector_of(DType::Float32, {1, 2}), b = vector_of(DType::Float32, {3});
    ValueList lists = {a, b}, factors = {2.0, std::int64_t{10}};
    Result<Value> result = evaluate(Op::torch("aten._foreach_mul_.ScalarList"), {lists, factors}, {});
    QVERIFY2(bool(result), result ? "" : result.error().message.c_str());
    QCOMPARE(result->get<ValueList>()->size(), std::size_t{2});
    QCOMPARE(a.item_as_double(1), 4.0);
    QCOMPARE(b.item_as_double(0), 30.0);
    QVERIFY(!evaluate(Op::torch("aten._foreach_mul.List"), {lists, ValueList{a}}, {}));
  }

  /// Lengths with a large prime factor go another way; the definition is the same.
  void transformsOfAnyLengthAreByTheDefinition() {
    for (const std::int64_t n : {12, 127, 131, 262, 509}) {
      Tensor x = *Tensor::empty(DType::Complex128, {n});
      auto* at = x.as<std::complex<double>>();
      for (std::int64_t i = 0; i < n; ++i) at[i] = {std::sin(3.0 * static_cast<double>(i)), static_cast<double>(i % 7)};
      for (const bool forward : {true, false}) {
        Result<Value> y =
            evaluate(Op::torch("aten._fft_c2c.default"), {x, ValueList{std::int64_t{0}}, std::int64_t{0}, forward}, {});
        QVERIFY2(bool(y), y ? "" : y.error().message.c_str());
        const auto* found = y->get<Tensor>()->as<std::complex<double>>();
        for (std::int64_t k = 0; k < n; ++k) {
          std::complex<double> sum = 0;
          for (std::int64_t i = 0; i < n; ++i)
            sum += at[i] * std::polar(1.0, (forward ? -2 : 2) * std::numbers::pi * static_cast<double>(i * k % n) /
                                               static_cast<double>(n));
          QVERIFY2(std::abs(found[k] - sum) < 1e-10, std::to_string(n).c_str());
        }
      }
    }
  }

  /// Matrix-vector products have kernels by the matrix's strides. Whole numbers are summed without rounding.
  void productsWithAVectorAreByTheDefinition() {
    const Op* mm = Op::torch("aten.mm.default");
    for (const DType dtype : {DType::Float32, DType::Float64})
      for (const std::int64_t k : {0, 1, 3, 17, 70})
        for (const std::int64_t n : {1, 2, 19, 600}) {
          std::vector<double> numbers(static_cast<std::size_t>(4 * std::max<std::int64_t>(k, 1) * n));
          for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i * i % 11) - 5;
          const Tensor data = vector_of(dtype, numbers);
          const auto value = [&](std::int64_t i) { return numbers[static_cast<std::size_t>(i)]; };
          for (const auto& [row, column] :
               {std::pair{n, std::int64_t{1}}, std::pair{std::int64_t{1}, k}, std::pair{2 * n, std::int64_t{2}}})
            for (const std::int64_t step : {1, 2}) {
              const Tensor matrix = data.view_as({k, n}, {row, column}, 0),
                           turned = data.view_as({n, k}, {column, row}, 0);
              const Tensor line = data.view_as({1, k}, {k, step}, 1), upright = data.view_as({k, 1}, {step, 1}, 1);
              const auto left = evaluate(mm, {line, matrix}, {}), right = evaluate(mm, {turned, upright}, {});
              QVERIFY(left && right);
              for (std::int64_t j = 0; j < n; ++j) {
                double sum = 0;
                for (std::int64_t p = 0; p < k; ++p) sum += value(1 + p * step) * value(p * row + j * column);
                QCOMPARE(left->get<Tensor>()->item_as_double(j), sum);
                QCOMPARE(right->get<Tensor>()->item_as_double(j), sum);
              }
            }
        }
  }

  void viewsShareMemory() {
    Tensor base = vector_of(DType::Float32, {1, 2, 3, 4, 5, 6});
    Result<Value> view = evaluate(Op::torch("aten.slice.Tensor"),
                                  {base, std::int64_t{0}, std::int64_t{1}, std::int64_t{6}, std::int64_t{2}}, {});
    QVERIFY(bool(view));
    const Tensor& t = *view->get<Tensor>();
    QCOMPARE(t.storage.get(), base.storage.get());
    QCOMPARE(t.sizes, Sizes({3}));
    QCOMPARE(t.strides, Sizes({2}));
    QCOMPARE(t.offset, std::int64_t{1});
    QCOMPARE(t.item_as_double(2), 6.0);
  }
};

QTEST_APPLESS_MAIN(SpecialValues)
#include "test_special_values.moc"
