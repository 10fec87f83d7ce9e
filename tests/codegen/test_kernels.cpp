#include <cmath>
#include <numeric>
#include <random>

#include "core/loops/execute.h"
#include "tests/codegen/run_kernel.h"
#include "tests/loops/mapped_kernels.h"

using namespace partita;
using namespace partita::codegen;
using loops::Accumulate;
using loops::Buffer;
using loops::Kernel;
using loops::Loop;
using loops::Mapping;
using loops::Reduce;
using loops::Scalar;
using loops::ScalarOp;
using loops::Store;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

SymExpr var(const char* name) {
  return SymExpr::symbol(name);
}

std::vector<float> random_floats(std::size_t n, std::uint32_t seed = 1) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> d(-2, 2);
  std::vector<float> v(n);
  for (float& x : v) x = d(rng);
  return v;
}

/// y = x * w + b over [rows, columns], w along columns, b along rows, one flattened loop or two.
Kernel affine(SymExpr rows, SymExpr columns, bool flat) {
  Kernel k;
  k.name = "affine";
  k.buffers = {{"x", DType::Float32, rows * columns, Buffer::Role::Input},
               {"w", DType::Float32, columns, Buffer::Role::Input},
               {"b", DType::Float32, rows, Buffer::Role::Input},
               {"y", DType::Float32, rows * columns, Buffer::Role::Output}};
  auto& s = k.scalars;
  SymExpr row = flat ? sym_floordiv(var("i0"), columns) : var("i0");
  SymExpr column = flat ? sym_mod(var("i0"), columns) : var("i1");
  SymExpr at = flat ? var("i0") : row * columns + column;
  Scalar y =
      s.Add(s.Mul(s.load(0, at, DType::Float32), s.load(1, column, DType::Float32)), s.load(2, row, DType::Float32));
  Store store{3, at, {}, y};
  if (flat)
    k.body.push_back(Loop{"i0", rows * columns, Mapping::Thread, true, {}, {store}});
  else
    k.body.push_back(
        Loop{"i0", rows, Mapping::Thread, false, {}, {Loop{"i1", columns, Mapping::Thread, true, {}, {store}}}});
  return k;
}

Kernel softmax(SymExpr rows, SymExpr columns) {
  Kernel k;
  k.name = "softmax";
  k.buffers = {{"x", DType::Float32, rows * columns, Buffer::Role::Input},
               {"row", DType::Float32, columns, Buffer::Role::Scratch},
               {"y", DType::Float32, rows * columns, Buffer::Role::Output}};
  k.accumulators = {{ScalarOp::Max, DType::Float32, -infinity}, {ScalarOp::Add, DType::Float32, 0}};
  auto& s = k.scalars;
  SymExpr base = var("i0") * columns;
  Scalar x = s.load(0, base + var("i1"), DType::Float32);
  Scalar e = s.Exp(s.Sub(s.load(0, base + var("i2"), DType::Float32), s.input(0, DType::Float32)));
  Scalar y = s.Div(s.load(1, var("i3"), DType::Float32), s.input(1, DType::Float32));
  k.body.push_back(Loop{"i0",
                        rows,
                        Mapping::Thread,
                        false,
                        {},
                        {Loop{"i1", columns, Mapping::Serial, true, {0}, {Reduce{0, x}}},
                         Loop{"i2", columns, Mapping::Serial, true, {1}, {Store{1, var("i2"), {}, e}, Reduce{1, e}}},
                         Loop{"i3", columns, Mapping::Serial, true, {}, {Store{2, base + var("i3"), {}, y}}}}});
  return k;
}

}  // namespace

class TestKernels : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void broadcast_data() {
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("columns");
    QTest::addColumn<bool>("flat");
    QTest::addColumn<bool>("symbolic");
    for (bool flat : {false, true})
      for (bool symbolic : {false, true})
        for (auto [r, c] : {std::pair{1, 1}, {1, 15}, {3, 16}, {5, 17}, {7, 1000}, {4, 64}, {9, 49}, {3, 128}})
          QTest::addRow("%dx%d%s%s", r, c, flat ? " flat" : "", symbolic ? " symbolic" : "")
              << r << c << flat << symbolic;
  }
  void broadcast() {
    QFETCH(int, rows);
    QFETCH(int, columns);
    QFETCH(bool, flat);
    QFETCH(bool, symbolic);
    Kernel k = symbolic ? affine(var("s0"), var("s1"), flat) : affine(rows, columns, flat);
    auto n = static_cast<std::size_t>(rows * columns);
    auto x = random_floats(n), w = random_floats(static_cast<std::size_t>(columns), 2),
         b = random_floats(static_cast<std::size_t>(rows), 3);
    std::vector<float> y(n + 1, -99);
    auto compiled = symbolic ? compile(k, {"s0", "s1"}) : compile(k);
    for (int threads : {1, 3}) {
      std::fill(y.begin(), y.end(), -99.f);
      run(compiled, {x.data(), w.data(), b.data(), y.data()}, {rows, columns}, threads);
      for (std::size_t i = 0; i < n; ++i) {
        auto c = static_cast<std::size_t>(columns);
        QCOMPARE(y[i], x[i] * w[i % c] + b[i / c]);
      }
      QCOMPARE(y[n], -99.f);
    }
  }

  void softmax_rows_data() {
    QTest::addColumn<int>("columns");
    for (int n : {1, 3, 15, 16, 17, 64, 1000}) QTest::addRow("%d", n) << n;
  }
  void softmax_rows() {
    QFETCH(int, columns);
    constexpr int rows = 6;
    auto c = static_cast<std::size_t>(columns);
    auto x = random_floats(rows * c);
    std::vector<float> y(rows * c);
    auto compiled = compile(softmax(rows, columns));
    run(compiled, {x.data(), y.data()}, {}, 2);
    for (std::size_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::size_t j = 0; j < c; ++j) sum += std::exp(double(x[r * c + j]));
      for (std::size_t j = 0; j < c; ++j)
        QVERIFY(std::fabs(y[r * c + j] - std::exp(double(x[r * c + j])) / sum) < 2e-7);
    }
    x[c] = NAN;  // the second row
    run(compiled, {x.data(), y.data()});
    for (std::size_t j = 0; j < c; ++j) {
      QVERIFY(std::isnan(y[c + j]));
      QVERIFY(!std::isnan(y[j]));
    }
  }

  void column_sum_data() {
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("columns");
    for (auto [r, c] : {std::pair{1, 1}, {7, 5}, {33, 100}, {100, 64}, {5, 1000}})
      QTest::addRow("%dx%d", r, c) << r << c;
  }
  void column_sum() {
    QFETCH(int, rows);
    QFETCH(int, columns);
    Kernel k;
    k.name = "column_sum";
    auto n = static_cast<std::size_t>(rows * columns);
    k.buffers = {{"x", DType::Float32, rows * columns, Buffer::Role::Input},
                 {"y", DType::Float32, columns, Buffer::Role::Output}};
    k.accumulators = {{ScalarOp::Add, DType::Float32, 0}};
    auto& s = k.scalars;
    Scalar x = s.load(0, var("i1") * SymExpr(columns) + var("i0"), DType::Float32);
    k.body.push_back(Loop{"i0",
                          columns,
                          Mapping::Thread,
                          false,
                          {},
                          {Loop{"i1", rows, Mapping::Serial, true, {0}, {Reduce{0, x}}},
                           Store{1, var("i0"), {}, s.input(0, DType::Float32)}}});
    QCOMPARE(vector_loops(k).contains(&std::get<Loop>(k.body[0])), columns >= 8);
    auto data = random_floats(n);
    std::vector<float> y(static_cast<std::size_t>(columns));
    auto compiled = compile(k);
    run(compiled, {data.data(), y.data()}, {}, 2);
    for (int j = 0; j < columns; ++j) {
      double want = 0;
      for (int i = 0; i < rows; ++i) want += data[static_cast<std::size_t>(i * columns + j)];
      QVERIFY(std::fabs(y[static_cast<std::size_t>(j)] - want) < 1e-4);
    }
  }

  /// Reduces everything to one number in one function; also with a NaN, and for the extremes.
  void full_reduction() {
    constexpr int n = 100'003;
    for (auto [op, start] : {std::pair{ScalarOp::Add, 0.0}, {ScalarOp::Max, -infinity}, {ScalarOp::Min, infinity}}) {
      Kernel k;
      k.name = "all";
      k.buffers = {{"x", DType::Float32, n, Buffer::Role::Input}, {"y", DType::Float32, 1, Buffer::Role::Output}};
      k.accumulators = {{op, DType::Float32, start}};
      k.body.push_back(
          Loop{"i0", n, Mapping::Serial, true, {0}, {Reduce{0, k.scalars.load(0, var("i0"), DType::Float32)}}});
      k.body.push_back(Store{1, 0, {}, k.scalars.input(0, DType::Float32)});
      auto compiled = compile(k);
      auto x = random_floats(n);
      float y = 0;
      run(compiled, {x.data(), &y});
      double want = op == ScalarOp::Add   ? std::accumulate(x.begin(), x.end(), 0.0)
                    : op == ScalarOp::Max ? *std::max_element(x.begin(), x.end())
                                          : *std::min_element(x.begin(), x.end());
      QVERIFY(std::fabs(y - want) < (op == ScalarOp::Add ? 5e-3 : 1e-9));
      x[n - 1] = NAN;
      run(compiled, {x.data(), &y});
      QVERIFY(std::isnan(y));
    }
  }

  void transposed() {
    constexpr int rows = 37, columns = 50;
    Kernel k;
    k.name = "transpose";
    k.buffers = {{"x", DType::Float32, rows * columns, Buffer::Role::Input},
                 {"y", DType::Float32, rows * columns, Buffer::Role::Output}};
    Scalar x = k.scalars.load(0, var("i1") * SymExpr(columns) + var("i0"), DType::Float32);
    k.body.push_back(
        Loop{"i0",
             columns,
             Mapping::Thread,
             false,
             {},
             {Loop{"i1", rows, Mapping::Thread, true, {}, {Store{1, var("i0") * SymExpr(rows) + var("i1"), {}, x}}}}});
    auto data = random_floats(rows * columns);
    std::vector<float> y(rows * columns);
    auto compiled = compile(k);
    run(compiled, {data.data(), y.data()}, {}, 2);
    for (std::size_t j = 0; j < columns; ++j)
      for (std::size_t i = 0; i < rows; ++i) QCOMPARE(y[j * rows + i], data[i * columns + j]);
  }

  /// An embedding and its gradient: whole rows at computed positions, with repeated indices.
  void gather_and_scatter_rows() {
    constexpr std::int64_t tokens = 41, width = 50, table = 7;
    std::vector<std::int64_t> ids(tokens);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i * i % table);
    auto weight = random_floats(table * width);
    Kernel g;
    g.name = "embedding";
    g.buffers = {{"ids", DType::Int64, tokens, Buffer::Role::Input},
                 {"weight", DType::Float32, table * width, Buffer::Role::Input},
                 {"out", DType::Float32, tokens * width, Buffer::Role::Output}};
    {
      auto& s = g.scalars;
      Scalar at =
          s.Add(s.Mul(s.load(0, var("i0"), DType::Int64), s.constant_int(DType::Int64, width)), s.index(var("i1")));
      g.body.push_back(
          Loop{"i0",
               tokens,
               Mapping::Thread,
               false,
               {},
               {Loop{"i1",
                     width,
                     Mapping::Thread,
                     true,
                     {},
                     {Store{2, var("i0") * SymExpr(width) + var("i1"), {}, s.load_at(1, at, DType::Float32)}}}}});
    }
    std::vector<float> out(tokens * width);
    auto gather = compile(g);
    run(gather, {ids.data(), weight.data(), out.data()}, {}, 2);
    for (std::size_t t = 0; t < tokens; ++t)
      for (std::size_t j = 0; j < width; ++j)
        QCOMPARE(out[t * width + j], weight[static_cast<std::size_t>(ids[t]) * width + j]);

    Kernel k;
    k.name = "embedding_backward";
    k.buffers = {{"ids", DType::Int64, tokens, Buffer::Role::Input},
                 {"grad", DType::Float32, tokens * width, Buffer::Role::Input},
                 {"out", DType::Float32, table * width, Buffer::Role::Output}};
    auto& s = k.scalars;
    Scalar at =
        s.Add(s.Mul(s.load(0, var("i0"), DType::Int64), s.constant_int(DType::Int64, width)), s.index(var("i1")));
    k.body.push_back(Loop{"i0",
                          tokens,
                          Mapping::Thread,
                          false,
                          {},
                          {Loop{"i1",
                                width,
                                Mapping::Thread,
                                true,
                                {},
                                {Store{2, 0, at, s.load(1, var("i0") * SymExpr(width) + var("i1"), DType::Float32),
                                       Accumulate::Atomic}}}}});
    std::vector<float> sums(table * width), want(table * width);
    auto scatter = compile(k);
    QVERIFY(!scatter.entry.phases[0].parallel);
    run(scatter, {ids.data(), out.data(), sums.data()}, {}, 2);
    for (std::size_t t = 0; t < tokens; ++t)
      for (std::size_t j = 0; j < width; ++j) want[static_cast<std::size_t>(ids[t]) * width + j] += out[t * width + j];
    for (std::size_t i = 0; i < sums.size(); ++i) QCOMPARE(sums[i], want[i]);
  }

  /// Several lanes of one vector store to the same element.
  void scatter_conflicts() {
    constexpr std::int64_t n = 100;
    Kernel k;
    k.name = "bincount";
    k.buffers = {{"ids", DType::Int64, n, Buffer::Role::Input}, {"out", DType::Int64, 5, Buffer::Role::Output}};
    Scalar id = k.scalars.load(0, var("i0"), DType::Int64);
    k.body.push_back(Loop{"i0",
                          n,
                          Mapping::Thread,
                          true,
                          {},
                          {Store{1, 0, id, k.scalars.constant_int(DType::Int64, 1), Accumulate::Atomic}}});
    std::vector<std::int64_t> ids(n), counts(5), want(5);
    for (std::size_t i = 0; i < n; ++i) ++want[static_cast<std::size_t>(ids[i] = static_cast<std::int64_t>(i * i % 5))];
    auto compiled = compile(k);
    run(compiled, {ids.data(), counts.data()}, {}, 2);
    QCOMPARE(counts, want);
  }

  /// where(mask, a, float(i) / b): bytes, 64-bit indices and floats side by side.
  void mixed_dtypes() {
    constexpr std::int64_t n = 77;
    Kernel k;
    k.name = "mixed";
    k.buffers = {{"mask", DType::Bool, n, Buffer::Role::Input},
                 {"a", DType::Int8, n, Buffer::Role::Input},
                 {"b", DType::Float64, n, Buffer::Role::Input},
                 {"less", DType::Bool, n, Buffer::Role::Output},
                 {"out", DType::Float32, n, Buffer::Role::Output}};
    auto& s = k.scalars;
    Scalar a = s.cast(s.load(1, var("i0"), DType::Int8), DType::Float32);
    Scalar quotient = s.Div(s.cast(s.index(var("i0")), DType::Float64), s.load(2, var("i0"), DType::Float64));
    Scalar q = s.cast(quotient, DType::Float32);
    k.body.push_back(Loop{"i0",
                          n,
                          Mapping::Thread,
                          true,
                          {},
                          {Store{3, var("i0"), {}, s.Lt(a, q)},
                           Store{4, var("i0"), {}, s.where(s.load(0, var("i0"), DType::Bool), a, q)}}});
    std::vector<std::uint8_t> mask(n), less(n);
    std::vector<std::int8_t> a8(n);
    std::vector<double> b(n);
    std::vector<float> out(n);
    for (std::size_t i = 0; i < n; ++i) {
      mask[i] = i % 3 == 0;
      a8[i] = static_cast<std::int8_t>(i * 37);
      b[i] = 0.5 + static_cast<double>(i % 7);
    }
    auto compiled = compile(k);
    run(compiled, {mask.data(), a8.data(), b.data(), less.data(), out.data()}, {}, 2);
    for (std::size_t i = 0; i < n; ++i) {
      auto want = static_cast<float>(static_cast<double>(i) / b[i]);
      QCOMPARE(out[i], mask[i] ? float(a8[i]) : want);
      QCOMPARE(bool(less[i]), float(a8[i]) < want);
    }
  }

  void half_types_data() {
    QTest::addColumn<bool>("brain");
    QTest::newRow("bf16") << true;
    QTest::newRow("f16") << false;
  }
  /// Every bit pattern is unchanged after a conversion to f32 and back, and x * 1.1 rounds to nearest even, denormals
  /// included.
  void half_types() {
    QFETCH(bool, brain);
    DType dtype = brain ? DType::BFloat16 : DType::Float16;
    constexpr std::int64_t n = 65536;
    Kernel k;
    k.name = "half";
    k.buffers = {{"x", dtype, n, Buffer::Role::Input},
                 {"same", dtype, n, Buffer::Role::Output},
                 {"y", dtype, n, Buffer::Role::Output}};
    auto& s = k.scalars;
    Scalar x = s.cast(s.load(0, var("i0"), dtype), DType::Float32);
    k.body.push_back(Loop{"i0",
                          n,
                          Mapping::Thread,
                          true,
                          {},
                          {Store{1, var("i0"), {}, s.cast(x, dtype)},
                           Store{2, var("i0"), {}, s.cast(s.Mul(x, s.constant(DType::Float32, 1.1)), dtype)}}});
    std::vector<std::uint16_t> in(n), same(n), y(n);
    for (std::size_t i = 0; i < n; ++i) in[i] = static_cast<std::uint16_t>(i);
    auto compiled = compile(k);
    run(compiled, {in.data(), same.data(), y.data()}, {}, 2);
    auto widen = [&](std::uint16_t bits) { return brain ? to_float(BFloat16{bits}) : to_float(Half{bits}); };
    auto narrow = [&](float v) { return brain ? to_bfloat16(v).bits : to_half(v).bits; };
    for (std::size_t i = 0; i < n; ++i) {
      float v = widen(in[i]);
      if (std::isnan(v)) {
        QVERIFY(std::isnan(widen(same[i])) && std::isnan(widen(y[i])));
        continue;
      }
      QCOMPARE(same[i], in[i]);
      QCOMPARE(y[i], narrow(v * 1.1f));
    }
  }

  /// A value of the row is used in the row's loop; a value that depends on a buffer that the kernel writes is loaded
  /// again.
  void store_then_load() {
    constexpr std::int64_t rows = 5, columns = 33;
    Kernel k;
    k.name = "running";
    k.buffers = {{"x", DType::Float32, rows * columns, Buffer::Role::Input},
                 {"sum", DType::Float32, rows, Buffer::Role::Output},
                 {"y", DType::Float32, rows * columns, Buffer::Role::Output}};
    k.accumulators = {{ScalarOp::Add, DType::Float32, 0}};
    auto& s = k.scalars;
    SymExpr at1 = var("i0") * SymExpr(columns) + var("i1"), at2 = var("i0") * SymExpr(columns) + var("i2");
    Scalar old = s.load(1, var("i0"), DType::Float32);
    k.body.push_back(Loop{"i0",
                          rows,
                          Mapping::Thread,
                          false,
                          {},
                          {Store{1, var("i0"), {}, s.Mul(old, s.constant(DType::Float32, 2))},
                           Loop{"i1", columns, Mapping::Serial, true, {0}, {Reduce{0, s.load(0, at1, DType::Float32)}}},
                           Store{1, var("i0"), {}, s.Add(old, s.input(0, DType::Float32))},
                           Loop{"i2",
                                columns,
                                Mapping::Serial,
                                true,
                                {},
                                {Store{2, at2, {}, s.Sub(s.load(0, at2, DType::Float32), old)}}}}});
    std::vector<float> x(rows * columns), y(rows * columns), sum(rows, 10);
    std::iota(x.begin(), x.end(), 0.f);
    auto compiled = compile(k);
    run(compiled, {x.data(), sum.data(), y.data()}, {}, 2);
    for (std::size_t r = 0; r < rows; ++r) {
      float want = 20;
      for (std::size_t j = 0; j < columns; ++j) want += x[r * columns + j];
      QCOMPARE(sum[r], want);
      for (std::size_t j = 0; j < columns; ++j) QCOMPARE(y[r * columns + j], x[r * columns + j] - want);
    }
  }

  /// Threads that wait for one another, groups that share memory, unrolled loops and atomic sums give what the slow
  /// executor gives.
  void mappings() {
    const auto x = random_floats(12 * 26);
    std::vector<std::int64_t> at(300), counted(7), counted_slowly(7);
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::int64_t>(i * i % 7);
    std::vector<float> out(12 * 26), sum(12), expected(12 * 26), expected_sum(12), t(12 * 26);
    const auto holds = [&](const Kernel& k, std::vector<void*> given, std::vector<void*> expected_in) {
      CompiledKernel compiled = compile(k);
      run(compiled, given, {}, 2);
      const Status done = loops::execute(k, expected_in);
      QVERIFY2(done, done ? "" : done.error().line().c_str());
    };
    const Kernel reversed = loops::testing::reversed(12 * 26);
    QCOMPARE(kernel_entry(reversed, "k").phases.size(), 2u);
    holds(reversed, {(void*)x.data(), t.data(), out.data()}, {(void*)x.data(), t.data(), expected.data()});
    QCOMPARE(out, expected);
    QCOMPARE(out[0], 2 * x.back());
    const Kernel rows = loops::testing::reversed_rows(12, 13);
    holds(rows, {(void*)x.data(), out.data(), sum.data()}, {(void*)x.data(), expected.data(), expected_sum.data()});
    QCOMPARE(out, expected);
    QCOMPARE(out[0], x[25]);
    for (std::size_t i = 0; i < sum.size(); ++i) QVERIFY(std::abs(sum[i] - expected_sum[i]) < 1e-5f);
    const Kernel counts = loops::testing::counts(300, 7);
    QVERIFY(!kernel_entry(counts, "k").phases[0].parallel);
    holds(counts, {at.data(), counted.data()}, {at.data(), counted_slowly.data()});
    QCOMPARE(counted, counted_slowly);
  }

  /// Code stored as bytes links without the compiler; damaged bytes do not link.
  void stored_code() {
    Kernel k = affine(3, 20, true);
    auto object = compile_kernels({&k, 1}, {}, {.keep_text = true});
    QVERIFY(bool(object));
    QVERIFY(object->ir.find("define void @partita_kernel_0_0") != std::string::npos);
    QVERIFY(object->assembly.find("partita_kernel_0_0:") != std::string::npos);
    std::string bytes = pack(object->objects);
    auto objects = unpack(bytes);
    QVERIFY(bool(objects));
    QVERIFY(*objects == object->objects);
    auto code = link_code(*objects);
    QVERIFY(bool(code));
    QVERIFY(bool((*code)->find("partita_kernel_0_0")));
    QCOMPARE((*code)->find("partita_kernel_9_0").error().code, std::string("codegen.link"));
    for (std::size_t cut : {std::size_t{0}, std::size_t{3}, std::size_t{11}, std::size_t{20}, bytes.size() - 1})
      QCOMPARE(unpack(std::string_view(bytes).substr(0, cut)).error().code, std::string("codegen.object"));
    QCOMPARE(unpack(bytes + "x").error().code, std::string("codegen.object"));
  }

  void unsupported_kernels() {
    Kernel k = affine(3, 20, true);
    k.buffers[0].dtype = DType::Complex64;
    auto object = compile_kernels({&k, 1}, {});
    QVERIFY(!object);
    QCOMPARE(object.error().code, std::string("codegen.cpu"));
    QCOMPARE(object.error().message,
             std::string("kernel affine: the CPU compiler has no code for tensors of complex64"));
  }
};

QTEST_GUILESS_MAIN(TestKernels)
#include "test_kernels.moc"
