// Scans as CUDA kernels: run on the CPU beside the operators' evaluations, and compiled. Where Clang's library or
// CUDA's compiler is missing, what needs it is skipped.
#include <QtTest>

#include <fmt/format.h>

#include "codegen/cuda/compile_cuda.h"
#include "codegen/cuda/cuda_machine.h"
#include "codegen/program/executable.h"
#include "tests/codegen/cuda_tools.h"
#include "tests/codegen/one_call.h"

using namespace partita;
using namespace partita::codegen;
using namespace partita::testing;

namespace {

/// Numbers of which many are equal; of a product of floats, numbers near 1.
Tensor numbers(DType dtype, const Sizes& sizes, bool near_one) {
  const bool real = is_floating(dtype) || is_complex(dtype);
  Tensor t = random_tensor(sizes, 1);
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    const float v = std::round(t.as<float>()[i] * 8);
    t.as<float>()[i] = !real ? std::fabs(v) : near_one ? 1 + v / 800 : v / 8;
  }
  return *t.to(dtype);
}

double tolerance_of(DType dtype) {
  if (dtype == DType::BFloat16) return 0x1p-7;
  if (dtype == DType::Float16) return 0x1p-10;
  return dtype == DType::Float64 || dtype == DType::Complex128 ? 1e-12 : 1e-5;
}

class TestCudaRows : public QObject {
  Q_OBJECT

  CudaTools tools_;

 private Q_SLOTS:
  void initTestCase() {
    if (!tools_.find()) QSKIP("neither Clang's library nor CUDA's compiler is here");
  }

  void scans_data() {
    QTest::addColumn<QString>("op");
    QTest::addColumn<DType>("dtype");
    QTest::addColumn<Sizes>("sizes");
    QTest::addColumn<int>("dim");
    QTest::addColumn<QString>("form");
    const DType f32 = DType::Float32;
    for (const std::string op : {"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"}) {
      const auto row = [&](const std::string& name, DType dtype, Sizes sizes, int dim, const char* form = "") {
        QTest::addRow("%s, %s", op.c_str(), name.c_str())
            << QString::fromStdString(op) << dtype << std::move(sizes) << dim << QString(form);
      };
      for (const DType dtype : {DType::Float64, DType::Float16, DType::BFloat16})
        row(std::string(short_name(dtype)), dtype, {3, 70}, 1);
      for (const DType dtype : {DType::Int64, DType::Int32, DType::Int16, DType::Int8, DType::UInt8, DType::Bool})
        if (op != "logcumsumexp") row(std::string(short_name(dtype)), dtype, {3, 70}, 1);
      if (!op.starts_with("cumm")) {
        row("complex", DType::Complex64, {3, 70}, 1);
        row("complex rows that lie apart", DType::Complex128, {70, 3}, 0);
      }
      row("tiles with a carry", f32, {2, 2300}, -1);
      row("rows that lie apart", f32, {2, 40, 7}, 1);
      row("many rows that lie apart", f32, {20, 4100}, 0);
      row("short rows that lie apart", f32, {5, 6, 7}, 0);
      row("a transposed tensor", f32, {9, 33}, 1, "transposed");
      row("NaN", f32, {3, 50}, 1, "NaN");
      row("a number", f32, {}, 0);
      row("no elements", f32, {3, 0}, 1);
      row("no rows", f32, {0, 3}, 1);
    }
  }
  void scans() {
    QFETCH(QString, op);
    QFETCH(DType, dtype);
    QFETCH(Sizes, sizes);
    QFETCH(int, dim);
    QFETCH(QString, form);
    Tensor x = numbers(dtype, sizes, op == "cumprod");
    if (form == "NaN") x.as<float>()[60] = x.as<float>()[70] = NAN;
    if (form == "transposed") x = transposed(x);
    OneCall c(("aten." + op + ".default").toLatin1().constData(), {x, std::int64_t{dim}});
    c.plan.target = emulated_machine()->target(1);
    const auto source = make_program(*emulated_machine(), c.plan);
    QVERIFY2(source, source ? "" : source.error().line().c_str());
    QVERIFY2(source->program.calls.empty(), "the call has no kernel");
    if (tools_.compiler) compiles(*source);
    if (!tools_.emulates || QTest::currentTestFailed()) return;
    auto e = compile_plan(*emulated_machine(), c.plan, {});
    QVERIFY2(e, e ? "" : e.error().line().c_str());
    const auto got = (*e)->run(c.inputs);
    QVERIFY2(got, got ? "" : got.error().line().c_str());
    const ValueList want = c.expected.get<ValueList>() ? *c.expected.get<ValueList>() : ValueList{c.expected};
    QCOMPARE(got->size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) compare(*(*got)[i].get<Tensor>(), *want[i].get<Tensor>());
  }

 private:
  static void compare(const Tensor& a, const Tensor& b) {
    QCOMPARE(a.sizes, b.sizes);
    QCOMPARE(a.dtype, b.dtype);
    const double tolerance = tolerance_of(b.dtype);
    const std::int64_t parts = is_complex(b.dtype) ? 2 : 1;
    const auto part = [&](const Tensor& t, std::int64_t i) {
      if (t.dtype == DType::Complex64) return static_cast<double>(reinterpret_cast<const float*>(t.data())[i]);
      return t.dtype == DType::Complex128 ? reinterpret_cast<const double*>(t.data())[i] : t.item_as_double(i);
    };
    for (std::int64_t i = 0; i < b.numel() * parts; ++i) {
      const double u = part(a, i), v = part(b, i);
      const bool same =
          u == v || (std::isnan(u) && std::isnan(v)) || std::fabs(u - v) <= tolerance * (1 + std::fabs(v));
      QVERIFY2(same, fmt::format("[{}]: {} beside {}", i, u, v).c_str());
    }
  }

  void compiles(const ProgramSource& source) {
    std::string text(cuda_prelude());
    for (const CudaKernel& k : cuda_kernels(source)) text += k.text;
    const auto binary = compile_cuda(*tools_.compiler, text, *find_cuda_architecture("sm_80"));
    QVERIFY2(binary, binary ? "" : binary.error().line().c_str());
    const auto resources = cuda_resources(*binary);
    QVERIFY2(resources, resources ? "" : resources.error().line().c_str());
    for (const CudaResources& r : *resources) QVERIFY2(r.spill_stores == 0, r.function.c_str());
  }
};

}  // namespace

QTEST_GUILESS_MAIN(TestCudaRows)
#include "test_cuda_rows.moc"
