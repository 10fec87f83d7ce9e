#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "codegen/host/runtime.h"
#include "tests/codegen/run_kernel.h"

using namespace partita;
using namespace partita::codegen;
using loops::Scalar;
using loops::ScalarOp;

namespace {

/// The largest allowed error in units in the last place of f32. Rows that are not named are exact.
struct Bound {
  ScalarOp op;
  double ulp;
};
constexpr Bound bounds[] = {
    {ScalarOp::Rsqrt, 1.5}, {ScalarOp::Exp, 1},    {ScalarOp::Exp2, 1},    {ScalarOp::Expm1, 1.5}, {ScalarOp::Log, 1},
    {ScalarOp::Log2, 2},    {ScalarOp::Log10, 2},  {ScalarOp::Log1p, 2},   {ScalarOp::Sin, 1},     {ScalarOp::Cos, 1},
    {ScalarOp::Tan, 1},     {ScalarOp::Tanh, 2.5}, {ScalarOp::Sigmoid, 2}, {ScalarOp::Erf, 2.5},   {ScalarOp::Pow, 1},
    {ScalarOp::Asin, 2},    {ScalarOp::Acos, 2},   {ScalarOp::Atan, 2},    {ScalarOp::Sinh, 2},    {ScalarOp::Cosh, 2},
    {ScalarOp::Asinh, 2},   {ScalarOp::Acosh, 2},  {ScalarOp::Atanh, 2},   {ScalarOp::Atan2, 2},   {ScalarOp::Erfc, 3},
    {ScalarOp::Erfinv, 1},  {ScalarOp::Lgamma, 8}, {ScalarOp::Digamma, 2},
};

void* runtime_address(ScalarOp op, DType dtype) {
  for (const RuntimeFunction& f : runtime_functions())
    if (f.symbol == runtime_symbol(op, dtype)) return f.address;
  return nullptr;
}

template <class T>
T reference(void* f, int arity, T a, T b, T c) {
  if (arity == 1) return reinterpret_cast<T (*)(T)>(f)(a);
  if (arity == 2) return reinterpret_cast<T (*)(T, T)>(f)(a, b);
  return reinterpret_cast<T (*)(T, T, T)>(f)(a, b, c);
}

double ulp_of(double v) {
  int e = 0;
  std::frexp(v, &e);
  return std::ldexp(1.0, std::max(e - 24, -149));
}

loops::Kernel elementwise(ScalarOp op, DType dtype, DType result, SymExpr n, bool vector) {
  loops::Kernel k;
  k.name = "op";
  std::vector<Scalar> args;
  SymExpr i = SymExpr::symbol("i0");
  for (int a = 0; a < 3; ++a) {
    k.buffers.push_back({"in" + std::to_string(a), dtype, n, loops::Buffer::Role::Input});
    if (a < loops::arity(op)) args.push_back(k.scalars.load(a, i, dtype));
  }
  args.resize(3);
  k.buffers.push_back({"out", result, n, loops::Buffer::Role::Output});
  Scalar v = k.scalars.make(op, args[0], args[1], args[2]);
  k.body.push_back(loops::Loop{"i0", n, loops::Mapping::Thread, vector, {}, {loops::Store{3, i, {}, v}}});
  return k;
}

template <class T>
std::vector<T> samples(std::uint32_t seed, std::size_t n) {
  std::mt19937 rng(seed);
  std::vector<T> v;
  if constexpr (std::is_floating_point_v<T>) {
    using L = std::numeric_limits<T>;
    for (T x : {T(0),     T(1),         T(0.5),          T(2),     T(1.5),       T(2.5),        T(3),
                T(10),    T(88.7),      T(89),           T(103.9), T(104),       T(149.6),      T(150),
                T(127.5), T(128),       T(1e-3),         T(1e-8),  T(1e5),       T(1e10),       T(1e30),
                L::min(), L::min() / 8, L::denorm_min(), L::max(), L::epsilon(), L::infinity(), L::quiet_NaN()})
      v.insert(v.end(), {x, -x});
    std::uniform_real_distribution<T> unit(-1, 1), small(-10, 10), large(-100, 100);
    while (v.size() < n) {
      v.push_back(unit(rng));
      v.push_back(small(rng));
      v.push_back(large(rng));
      v.push_back(static_cast<T>(std::bit_cast<float>(static_cast<std::uint32_t>(rng()))));
    }
  } else {
    using L = std::numeric_limits<T>;
    for (int x : {0, 1, 2, 3, 5, 7, 8, 31, 63, -1, -2, -3, -7}) v.push_back(static_cast<T>(x));
    v.insert(v.end(), {L::min(), L::max(), static_cast<T>(L::max() - 1)});
    while (v.size() < n) {
      v.push_back(static_cast<T>(rng()));
      v.push_back(static_cast<T>(rng() % 17));
    }
  }
  v.resize(n);
  std::shuffle(v.begin(), v.end(), rng);
  return v;
}

template <class T>
void check_exact(ScalarOp op, DType dtype) {
  void* f = runtime_address(op, dtype);
  if (!f) return;
  int arity = loops::arity(op);
  constexpr std::size_t n = 1003;
  auto a = samples<T>(1, n), b = samples<T>(2, n), c = samples<T>(3, n);
  bool divides = op == ScalarOp::Div || op == ScalarOp::FloorDiv || op == ScalarOp::Fmod || op == ScalarOp::Remainder;
  if (divides && std::is_integral_v<T>)
    for (T& d : b) d = d == 0 ? T(3) : d;
  loops::ScalarBuilder probe;
  std::vector<Scalar> s(3);
  for (int i = 0; i < arity; ++i) s[static_cast<std::size_t>(i)] = probe.input(i, dtype);
  bool boolean = probe.dtype(probe.make(op, s[0], s[1], s[2])) == DType::Bool;
  auto kernel = compile(elementwise(op, dtype, boolean ? DType::Bool : dtype, static_cast<std::int64_t>(n), true));
  std::vector<T> out(n);
  std::vector<std::uint8_t> flags(n);
  run(kernel, {a.data(), b.data(), c.data(), boolean ? static_cast<void*>(flags.data()) : out.data()});
  for (std::size_t i = 0; i < n; ++i) {
    T want = reference<T>(f, arity, a[i], b[i], c[i]);
    T got = boolean ? static_cast<T>(flags[i]) : out[i];
    bool same = got == want || (got != got && want != want);
    if constexpr (std::is_floating_point_v<T>) {
      // The minimum or maximum of +0 and -0 may have either sign.
      if (op != ScalarOp::Min && op != ScalarOp::Max)
        same = same && (got != got || std::signbit(got) == std::signbit(want));
    }
    if (!same)
      QFAIL(qPrintable(QString("%1.%2(%3, %4, %5) = %6, not %7")
                           .arg(QString::fromStdString(std::string(loops::name(op))))
                           .arg(QString::fromStdString(std::string(short_name(dtype))))
                           .arg(double(a[i]), 0, 'g', 17)
                           .arg(double(b[i]), 0, 'g', 17)
                           .arg(double(c[i]))
                           .arg(double(got), 0, 'g', 17)
                           .arg(double(want), 0, 'g', 17)));
  }
}

}  // namespace

class TestScalarOps : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void f32_data() {
    QTest::addColumn<int>("op");
    for (int op = 0; op < static_cast<int>(ScalarOp::Const); ++op)
      QTest::newRow(std::string(loops::name(static_cast<ScalarOp>(op))).c_str()) << op;
  }
  void f32() {
    QFETCH(int, op);
    auto row = static_cast<ScalarOp>(op);
    double bound = 0;
    for (const Bound& b : bounds)
      if (b.op == row) bound = b.ulp;
    if (bound == 0) return check_exact<float>(row, DType::Float32);

    int arity = loops::arity(row);
    void* exact = runtime_address(row, DType::Float64);
    QVERIFY(exact);
    constexpr std::size_t n = 20011;
    auto a = samples<float>(4, n), b = samples<float>(5, n);
    auto kernel = compile(elementwise(row, DType::Float32, DType::Float32, static_cast<std::int64_t>(n), true));
    std::vector<float> out(n);
    run(kernel, {a.data(), b.data(), a.data(), out.data()});
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double want = reference<double>(exact, arity, a[i], b[i], 0);
      float rounded = static_cast<float>(want);
      // In a sigmoid, exp(-x) overflows before the result is a denormal.
      if (row == ScalarOp::Sigmoid && std::fabs(want) < 3e-38) want = rounded = out[i] < 3e-38f ? out[i] : rounded;
      if (std::isnan(want) || std::isinf(rounded) || rounded == 0) {
        bool same = std::isnan(want) ? std::isnan(out[i])
                                     : out[i] == rounded || std::fabs(out[i] - want) <= bound * ulp_of(want);
        if (!same) QFAIL(qPrintable(QString("(%1, %2) = %3, not %4").arg(a[i]).arg(b[i]).arg(out[i]).arg(want)));
        continue;
      }
      double error = std::fabs(out[i] - want) / ulp_of(want);
      if (!(error <= bound))
        QFAIL(qPrintable(QString("(%1, %2) = %3, not %4: %5 ulp")
                             .arg(a[i], 0, 'g', 9)
                             .arg(b[i], 0, 'g', 9)
                             .arg(out[i], 0, 'g', 9)
                             .arg(want, 0, 'g', 12)
                             .arg(error)));
      worst = std::max(worst, error);
    }
    qInfo("worst %.3f ulp", worst);
  }
  void every_dtype_data() { f32_data(); }
  void every_dtype() {
    QFETCH(int, op);
    auto row = static_cast<ScalarOp>(op);
    check_exact<double>(row, DType::Float64);
    check_exact<std::int64_t>(row, DType::Int64);
    check_exact<std::int32_t>(row, DType::Int32);
    check_exact<std::uint8_t>(row, DType::UInt8);
    check_exact<std::int16_t>(row, DType::Int16);
  }
  /// The scalar form gives the same bits as the vector form, so that tails and uniform values do not depend on their
  /// position.
  void scalar_form_data() { f32_data(); }
  void scalar_form() {
    QFETCH(int, op);
    auto row = static_cast<ScalarOp>(op);
    if (!runtime_address(row, DType::Float32)) return;
    constexpr std::size_t n = 1003;
    auto a = samples<float>(6, n), b = samples<float>(7, n), c = samples<float>(8, n);
    loops::ScalarBuilder probe;
    std::vector<Scalar> s(3);
    for (int i = 0; i < loops::arity(row); ++i) s[static_cast<std::size_t>(i)] = probe.input(i, DType::Float32);
    DType result = probe.dtype(probe.make(row, s[0], s[1], s[2]));
    std::vector<float> vector(n), scalar(n);
    auto kv = compile(elementwise(row, DType::Float32, result, SymExpr::symbol("s0"), true), {"s0"});
    auto ks = compile(elementwise(row, DType::Float32, result, SymExpr::symbol("s0"), false), {"s0"});
    run(kv, {a.data(), b.data(), c.data(), vector.data()}, {n});
    run(ks, {a.data(), b.data(), c.data(), scalar.data()}, {n});
    for (std::size_t i = 0; i < n; ++i) {
      if (vector[i] != vector[i] && scalar[i] != scalar[i]) continue;
      QCOMPARE(std::bit_cast<std::uint32_t>(vector[i]), std::bit_cast<std::uint32_t>(scalar[i]));
    }
  }
};

QTEST_GUILESS_MAIN(TestScalarOps)
#include "test_scalar_ops.moc"
