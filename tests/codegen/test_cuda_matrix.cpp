// Matrix products, convolutions and attention as CUDA kernels: run on the CPU beside the operators' evaluations, and
// compiled for each architecture. Where Clang's library or CUDA's compiler is missing, what needs it is skipped.
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

Tensor random_of(DType dtype, const Sizes& sizes, std::uint32_t seed) {
  if (is_floating(dtype)) return *random_tensor(sizes, seed).to(dtype);
  Tensor t = random_tensor(sizes, seed);
  for (std::int64_t i = 0; i < t.numel(); ++i) t.as<float>()[i] = std::round(t.as<float>()[i] * 100);
  return *t.to(dtype);
}

/// What rounding once to the dtype, and sums in its sum type, may cost.
double tolerance_of(DType dtype) {
  return dtype == DType::Float32 ? 1e-5 : dtype == DType::BFloat16 ? 0x1p-7 : dtype == DType::Float16 ? 0x1p-10 : 1e-12;
}

class TestCudaMatrix : public QObject {
  Q_OBJECT

  CudaTools tools_;

  /// Compiles the kernels of a call, which must be one of ours, and runs them beside its evaluation.
  void check(OneCall& c, double tolerance) {
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
    ValueList want = {c.expected};
    if (auto* list = c.expected.get<ValueList>()) {
      want.clear();
      for (const Value& v : *list)
        if (!v.is_none()) want.push_back(v);
    }
    QCOMPARE(got->size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      const Tensor &a = *(*got)[i].get<Tensor>(), &b = *want[i].get<Tensor>();
      QCOMPARE(a.sizes, b.sizes);
      for (std::int64_t j = 0; j < b.numel(); ++j) {
        const double x = a.item_as_double(j), y = b.item_as_double(j);
        const bool same =
            x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= tolerance * (1 + std::fabs(y));
        QVERIFY2(same, fmt::format("result {} [{}]: {} beside {}", i, j, x, y).c_str());
      }
    }
  }

  void compiles(const ProgramSource& source) {
    std::string text(cuda_prelude());
    for (const CudaKernel& k : cuda_kernels(source)) text += k.text;
    const auto binary = compile_cuda(*tools_.compiler, text, *find_cuda_architecture("sm_80"));
    QVERIFY2(binary, binary ? "" : binary.error().line().c_str());
    const auto resources = cuda_resources(*binary);
    QVERIFY2(resources, resources ? "" : resources.error().line().c_str());
    for (const CudaResources& r : *resources) {
      QVERIFY2(r.spill_stores == 0, r.function.c_str());
      QVERIFY2(occupancy(r, 256, 0, *find_cuda_architecture("sm_80")).blocks > 0, r.function.c_str());
    }
  }

 private Q_SLOTS:
  void initTestCase() {
    if (!tools_.find()) QSKIP("neither Clang's library nor CUDA's compiler is here");
  }

  void products_data() {
    QTest::addColumn<DType>("dtype");
    QTest::addColumn<Sizes>("sizes");  // m, k, n, and the batch if there is one
    QTest::addColumn<int>("form");     // 1: the left factor is transposed, 2: the right one, 4: something is added
    for (DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Int64, DType::Int8})
      QTest::addRow("%s", std::string(short_name(dtype)).c_str()) << dtype << Sizes{33, 40, 21} << 4;
    for (int form = 0; form < 4; ++form)
      QTest::addRow("transposed %d", form) << DType::Float32 << Sizes{70, 25, 66} << form;
    QTest::newRow("halves, transposed") << DType::BFloat16 << Sizes{70, 35, 66} << 3;
    QTest::newRow("batches") << DType::Float32 << Sizes{9, 5, 17, 4} << 6;
    QTest::newRow("batches of halves") << DType::Float16 << Sizes{9, 50, 17, 3} << 4;
    QTest::newRow("parts of k") << DType::Float32 << Sizes{5, 1100, 7} << 4;
    QTest::newRow("parts of k, halves") << DType::Float16 << Sizes{5, 1500, 7} << 0;
    QTest::newRow("one element") << DType::Float32 << Sizes{1, 1, 1} << 0;
    QTest::newRow("no k") << DType::Float32 << Sizes{3, 0, 2} << 4;
    QTest::newRow("no rows") << DType::Float32 << Sizes{0, 3, 2} << 0;
  }
  void products() {
    QFETCH(DType, dtype);
    QFETCH(Sizes, sizes);
    QFETCH(int, form);
    const auto factor = [&](bool turned, std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
      Sizes of = turned ? Sizes{columns, rows} : Sizes{rows, columns};
      if (sizes.size() == 4) of.insert(of.begin(), sizes[3]);
      const Tensor t = random_of(dtype, of, seed);
      return turned ? transposed(t) : t;
    };
    const Tensor a = factor(form & 1, sizes[0], sizes[1], 1), b = factor(form & 2, sizes[1], sizes[2], 2);
    const bool batched = sizes.size() == 4;
    const double tolerance = tolerance_of(dtype) * (sizes[1] > 1000 ? 4 : 1);
    if (form & 4) {
      const Value two = is_floating(dtype) ? Value(0.75) : Value(std::int64_t{2}), three = std::int64_t{3};
      OneCall c(batched ? "aten.baddbmm.default" : "aten.addmm.default",
                {random_of(dtype, {sizes[2]}, 3), a, b, three, two});
      check(c, tolerance);
    } else {
      OneCall c(batched ? "aten.bmm.default" : "aten.mm.default", {a, b});
      check(c, tolerance);
    }
  }

  /// TF32 has 11 bits: the product differs from the exact one, and not by more than these allow.
  void products_in_tf32() {
    Config own = config();
    own.cuda_tf32 = true;
    const ConfigScope scope(own);
    const Tensor a = random_of(DType::Float32, {40, 64}, 1), b = random_of(DType::Float32, {64, 24}, 2);
    OneCall c("aten.mm.default", {a, b});
    check(c, 0x1p-9);
    if (!tools_.emulates || QTest::currentTestFailed()) return;
    auto e = compile_plan(*emulated_machine(), c.plan, {});
    QVERIFY(e);
    const auto got = (*e)->run(c.inputs);
    QVERIFY(got);
    QVERIFY(worst(*(*got)[0].get<Tensor>(), *c.expected.get<Tensor>()) > 1e-5);
  }

  void convolutions_data() {
    QTest::addColumn<DType>("dtype");
    QTest::addColumn<Sizes>("input");
    QTest::addColumn<Sizes>("weight");
    QTest::addColumn<Sizes>("window");  // stride, padding, dilation, output padding, groups
    QTest::addColumn<bool>("turned");
    const auto row = [](const char* name, DType dtype, Sizes input, Sizes weight, Sizes window, bool turned = false) {
      QTest::newRow(name) << dtype << std::move(input) << std::move(weight) << std::move(window) << turned;
    };
    const DType f32 = DType::Float32;
    row("plain", f32, {2, 3, 9, 8}, {5, 3, 3, 3}, {1, 1, 1, 0, 1});
    row("stride and dilation", f32, {2, 4, 11, 12}, {6, 4, 3, 2}, {2, 2, 2, 0, 1});
    row("groups", f32, {2, 4, 7, 7}, {6, 2, 3, 3}, {1, 1, 1, 0, 2});
    row("depthwise", f32, {1, 6, 7, 7}, {6, 1, 3, 3}, {2, 0, 1, 0, 6});
    row("one dimension", f32, {3, 4, 20}, {5, 4, 4}, {3, 1, 1, 0, 1});
    row("three dimensions", f32, {1, 2, 5, 4, 6}, {3, 2, 2, 3, 1}, {1, 1, 1, 0, 1});
    row("double", DType::Float64, {2, 3, 6, 5}, {4, 3, 3, 3}, {1, 1, 1, 0, 1});
    row("float16", DType::Float16, {2, 3, 9, 8}, {5, 3, 3, 3}, {1, 1, 1, 0, 1});
    row("bfloat16", DType::BFloat16, {2, 4, 9, 8}, {6, 2, 3, 3}, {2, 1, 1, 0, 2});
    row("transposed", f32, {2, 4, 5, 6}, {4, 3, 3, 3}, {2, 1, 1, 1, 1}, true);
    row("transposed groups", f32, {2, 4, 5, 6}, {4, 3, 3, 2}, {2, 1, 2, 0, 2}, true);
    row("parts of a gradient", f32, {4, 2, 24, 24}, {3, 2, 3, 3}, {1, 1, 1, 0, 1});
  }
  void convolutions() {
    QFETCH(DType, dtype);
    QFETCH(Sizes, input);
    QFETCH(Sizes, weight);
    QFETCH(Sizes, window);
    QFETCH(bool, turned);
    const Tensor x = random_of(dtype, input, 1), w = random_of(dtype, weight, 2);
    const std::int64_t out = turned ? weight[1] * window[4] : weight[0];
    const auto list = [&](std::size_t i) {
      ValueList values;
      for (std::size_t d = 2; d < weight.size(); ++d) values.push_back(window[i]);
      return values;
    };
    OneCall forward("aten.convolution.default",
                    {x, w, random_of(dtype, {out}, 3), list(0), list(1), list(2), turned, list(3), window[4]});
    check(forward, tolerance_of(dtype));
    const Tensor grad = random_of(dtype, forward.expected.get<Tensor>()->sizes, 4);
    OneCall backward("aten.convolution_backward.default", {grad, x, w, ints({out}), list(0), list(1), list(2), turned,
                                                           list(3), window[4], ValueList{true, true, true}});
    check(backward, tolerance_of(dtype) * 4);
  }

  void attention_data() {
    QTest::addColumn<Sizes>("sizes");  // batch, heads, queries, keys, width
    QTest::addColumn<DType>("dtype");
    QTest::addColumn<bool>("causal");
    QTest::addColumn<QString>("mask");
    const auto row = [](const char* name, Sizes sizes, DType dtype, bool causal = false, const char* mask = "") {
      QTest::newRow(name) << std::move(sizes) << dtype << causal << QString(mask);
    };
    const DType f32 = DType::Float32;
    row("whole tiles", {1, 2, 64, 64, 16}, f32);
    row("parts of tiles", {1, 2, 37, 41, 20}, f32);
    row("causal", {1, 2, 50, 50, 16}, f32, true);
    row("causal, fewer keys", {1, 1, 50, 33, 16}, f32, true);
    row("causal, more keys", {1, 1, 5, 40, 16}, f32, true);
    row("one query", {2, 2, 1, 40, 8}, f32);
    row("rows of 64", {1, 1, 70, 70, 64}, f32, true);
    row("many heads", {1, 256, 2, 31, 64}, f32);
    row("wide", {1, 1, 9, 20, 128}, f32);
    row("wider", {1, 1, 9, 12, 200}, f32);
    row("double", {1, 1, 20, 35, 12}, DType::Float64, true, "full");
    row("bfloat16", {1, 1, 20, 35, 12}, DType::BFloat16, false, "full");
    row("float16", {1, 1, 20, 35, 12}, DType::Float16, true);
    row("mask of keys", {2, 2, 20, 35, 16}, f32, false, "keys");
    row("boolean mask", {1, 2, 20, 35, 16}, f32, false, "boolean");
    row("rows that attend to nothing", {1, 2, 20, 40, 16}, f32, false, "empty rows");
    row("no queries", {1, 2, 0, 7, 4}, f32);
    row("no keys", {1, 2, 7, 0, 4}, f32);
    row("halves, whole tiles", {1, 2, 64, 64, 64}, DType::Float16);
    row("halves, wide, causal", {1, 1, 70, 70, 100}, DType::BFloat16, true);
    row("halves, wider", {1, 1, 9, 40, 300}, DType::Float16);
    row("halves, rows that attend to nothing", {1, 2, 20, 40, 16}, DType::BFloat16, false, "empty rows");
    row("TF32", {1, 2, 70, 45, 20}, f32, false, "full");
    row("TF32, causal", {1, 1, 66, 66, 64}, f32, true);
  }
  void attention() {
    QFETCH(Sizes, sizes);
    QFETCH(DType, dtype);
    QFETCH(bool, causal);
    QFETCH(QString, mask);
    Config own = config();
    own.cuda_tf32 = QByteArray(QTest::currentDataTag()).startsWith("TF32");
    const ConfigScope scope(own);
    const double tolerance = own.cuda_tf32 ? 0x1p-8 : tolerance_of(dtype);
    const std::int64_t batch = sizes[0], heads = sizes[1], queries = sizes[2], keys = sizes[3], width = sizes[4];
    const auto operand = [&](std::int64_t rows, std::uint32_t seed) {
      const Tensor t = random_of(dtype, {batch, rows, heads, width}, seed);
      return t.view_as({batch, heads, rows, width}, {rows * heads * width, width, heads * width, 1}, 0);
    };
    const Tensor q = operand(queries, 1), k = operand(keys, 2), v = operand(keys, 3), grad = operand(queries, 4);
    Value given;
    if (!mask.isEmpty()) {
      Tensor m = random_tensor(mask == "keys" ? Sizes{batch, 1, 1, keys} : Sizes{batch, heads, queries, keys}, 5);
      for (std::int64_t i = 0; i < m.numel(); ++i)
        if ((mask == "empty rows" && i / keys % 3 == 0) || i % 7 == 3)
          m.as<float>()[i] = -std::numeric_limits<float>::infinity();
      given = *m.to(mask == "boolean" ? DType::Bool : dtype);
    }
    OneCall forward("aten._scaled_dot_product_flash_attention_for_cpu.default", {q, k, v, 0.0, causal, given, 0.3});
    check(forward, tolerance);
    if (QTest::currentTestFailed()) return;
    if (own.cuda_tf32 || itemsize(dtype) == 2) {
      const auto source = make_program(*emulated_machine(), forward.plan);
      QCOMPARE(cuda_kernels(*source)[0].text.find("mma.sync") != std::string::npos, width <= 256);
    }
    const ValueList results = *forward.expected.get<ValueList>();
    OneCall backward("aten._scaled_dot_product_flash_attention_for_cpu_backward.default",
                     {grad, q, k, v, results[0], results[1], 0.0, causal, given, 0.3});
    check(backward, tolerance);
  }
};

}  // namespace

QTEST_GUILESS_MAIN(TestCudaMatrix)
#include "test_cuda_matrix.moc"
