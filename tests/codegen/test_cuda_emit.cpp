// The text of CUDA kernels, and what plans for a GPU compute.
#include <QtTest>
#include <algorithm>
#include <set>

#include "codegen/cuda/cuda_kernel.h"
#include "core/base/config.h"
#include "core/interp/interpreter.h"
#include "core/schedule/execute_plan.h"
#include "core/schedule/make_plan.h"
#include "tests/loops/mapped_kernels.h"
#include "tests/schedule/plan_test.h"
#include "tests/support/fx.h"

using namespace partita;
using namespace partita::codegen;

namespace {

schedule::Plan planned(const Graph& graph, bool symbolic = false) {
  auto plan = schedule::make_plan(graph, {.target = cuda_target(), .symbolic = symbolic});
  if (!plan) qFatal("%s", plan.error().line().c_str());
  return *std::move(plan);
}

CudaKernel emitted(const loops::Kernel& kernel, const std::vector<std::string>& symbols = {}) {
  if (const auto broken = loops::verify(kernel); !broken.empty()) qFatal("%s", broken[0].c_str());
  auto cuda = emit_cuda(kernel, "k", symbols, cuda_target());
  if (!cuda) qFatal("%s", cuda.error().line().c_str());
  return *std::move(cuda);
}

/// The texts of a graph's kernels.
std::string text_of(const char* parameters, const char* lines, const std::vector<std::string>& symbols = {}) {
  std::string text;
  for (const loops::Kernel& k : planned(*testing::fx(parameters, lines), !symbols.empty()).kernels)
    text += emitted(k, symbols).text;
  return text;
}

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

struct Case {
  const char *name, *parameters, *lines;
  std::vector<std::string> symbols;
  const char* text;
};

const Case texts[] = {
    {"pointwise, broadcast",
     "x: <f32[128, 1000][1000, 1]>, w: <f32[1000][1]>, b: <f32[128, 1][1, 1]>",
     "mul = $mul.Tensor(x, w)\nadd = $add.Tensor(mul, b)\nrelu = $relu(add)\nreturn (relu,)",
     {},
     R"(
)"},
    {"bools and halves",
     "x: <f16[9][1]>, m: <b8[9][1]>",
     "where = $where.self(m, x, x)\nnot_1 = $logical_not(m)\nreturn (where, not_1)",
     {},
     R"(
)"},
    {"a row in registers",
     "x: <bf16[64, 4096][4096, 1]>",
     "softmax = $_softmax(x, 1, False)\nreturn (softmax,)",
     {},
     R"(
)"},
    {"a long row", "x: <f32[8, 50257][50257, 1]>", "softmax = $_softmax(x, 1, False)\nreturn (softmax,)", {}, R"(
)"},
    {"a warp for a row", "x: <f32[10, 40][40, 1]>", "sum_1 = $sum.dim_IntList(x, [1])\nreturn (sum_1,)", {}, R"(
)"},
    {"columns", "x: <f32[64, 100][100, 1]>", "sum_1 = $sum.dim_IntList(x, [0])\nreturn (sum_1,)", {}, R"(
)"},
    {"scatter",
     "x: <f32[10, 4][4, 1]>, i: <i64[6][1]>, v: <f32[6, 4][4, 1]>",
     "index_add = $index_add(x, 0, i, v)\nreturn (index_add,)",
     {},
     R"(
)"},
    {"symbolic", "x: <f32[s0, s1][s1, 1]>, w: <f32[s1][1]>", "mul = $mul.Tensor(x, w)\nreturn (mul,)", {"s0", "s1"}, R"(
)"},
};

}  // namespace

class TestCudaEmit : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void text_data() {
    QTest::addColumn<int>("row");
    for (std::size_t i = 0; i < std::size(texts); ++i) QTest::newRow(texts[i].name) << static_cast<int>(i);
  }
  void text() {
    QFETCH(int, row);
    const Case& c = texts[row];
    const std::string found = "\n" + text_of(c.parameters, c.lines, c.symbols);
    if (found != c.text) qInfo("%s", found.c_str());
    QCOMPARE(QString::fromStdString(found), QString(c.text));
  }

  /// What the GPU's loops compute, by the executor that finds races.
  void values_data() {
    QTest::addColumn<QString>("parameters");
    QTest::addColumn<QString>("lines");
    const auto add = [](const char* name, const char* parameters, const char* lines) {
      QTest::newRow(name) << parameters << lines;
    };
    for (const Case& c : texts)
      if (c.symbols.empty()) add(c.name, c.parameters, c.lines);
    add("layer norm", "x: <f32[6, 96][96, 1]>, w: <f32[96][1]>, b: <f32[96][1]>",
        "n = $native_layer_norm(x, [96], w, b, 1e-5)\na = n[0]\nm = n[1]\nr = n[2]\nreturn (a, m, r)");
    add("sum of all", "x: <f32[300, 300][300, 1]>", "a = $sum(x)\nreturn (a,)");
    add("rows that overwrite", "x: <f32[5, 64][64, 1]>", "a = $_softmax(x, 1, False)\nc = $copy_(x, a)\nreturn (a,)");
    add("many rows to columns", "x: <f32[1000, 6][6, 1]>", "a = $sum.dim_IntList(x, [0])\nreturn (a,)");
    add("reduced dims apart", "x: <f32[4, 5, 30][150, 30, 1]>", "a = $sum.dim_IntList(x, [0, 2])\nreturn (a,)");
    add("a maximum and its place", "x: <f32[4, 50][50, 1]>",
        "a = $amax(x, [1], True)\nb = $eq.Tensor(x, a)\nc = $argmax(x, 1)\nreturn (a, b, c)");
    add("a number", "x: <f32[]>", "a = $exp(x)\nreturn (a,)");
    add("nothing", "x: <f32[0, 4][4, 1]>", "a = $exp(x)\nb = $sum.dim_IntList(x, [0])\nreturn (a, b)");
  }
  void values() {
    QFETCH(QString, parameters);
    QFETCH(QString, lines);
    const auto graph = testing::fx(parameters.toStdString(), lines.toStdString());
    const schedule::Plan plan = planned(*graph);
    const std::vector<Value> inputs = testing::random_inputs(*graph);
    std::vector<Value> ours = testing::copies(inputs), theirs = testing::copies(inputs);
    const auto found = schedule::execute(plan, graph->attributes, ours);
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    const auto expected = interpret(*graph, theirs);
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    QCOMPARE(found->size(), expected->size());
    for (std::size_t i = 0; i < found->size(); ++i)
      QVERIFY2(testing::difference((*found)[i], (*expected)[i]) < 1e-4, qPrintable(QString::number(i)));
    for (std::size_t i = 0; i < ours.size(); ++i) QVERIFY(testing::difference(ours[i], theirs[i]) < 1e-4);
  }

  /// Each line of the text knows its nodes, and functions follow each other at the barriers.
  void lines() {
    const schedule::Plan plan = planned(*testing::fx("x: <f32[9][1]>", "a = $sin(x)\nb = $exp(a)\nreturn (b,)"));
    const CudaKernel cuda = emitted(plan.kernels[0]);
    QCOMPARE(static_cast<std::ptrdiff_t>(cuda.lines.size()), std::ranges::count(cuda.text, '\n'));
    std::set<int> met;
    for (const std::vector<int>& l : cuda.lines) met.insert(l.begin(), l.end());
    QCOMPARE(met, (std::set<int>{0, 1}));
    QCOMPARE(emitted(loops::testing::reversed(100)).functions.size(), std::size_t{2});
    QVERIFY(emitted(loops::testing::reversed_rows(3, 7)).functions[0].cooperates);
  }

  /// Scratch that a thread or a group cannot hold is memory of the kernel.
  void workspace() {
    loops::Kernel k = loops::testing::reversed_rows(3, 7);
    QVERIFY(emitted(k).workspace.empty());
    k = loops::testing::reversed_rows(3, 10000);
    const CudaKernel cuda = emitted(k);
    QCOMPARE(cuda.workspace.size(), std::size_t{1});
    QVERIFY(cuda.workspace[0].elements.is(3 * 20000));
  }

  void indices_of_64_bits() {
    const auto at = [](const char* parameters) { return text_of(parameters, "a = $sin(x)\nreturn (a,)"); };
    QVERIFY(has(at("x: <f32[100000][1]>"), "const int "));
    QVERIFY(has(at("x: <f32[3000000000][1]>"), "const long long v0 = (blockIdx.x * 256LL"));
  }

  void deterministic() {
    const char* const parameters = "x: <f32[10, 4][4, 1]>, i: <i64[6][1]>, v: <f32[6, 4][4, 1]>";
    const char* const lines = "a = $index_add(x, 0, i, v)\nreturn (a,)";
    QVERIFY(has(text_of(parameters, lines), "atomic_add("));
    Config config = partita::config();
    config.deterministic = true;
    const ConfigScope scope(config);
    QVERIFY(!has(text_of(parameters, lines), "atomic_add("));
  }

  void refused() {
    loops::Kernel k = loops::testing::reversed(4);
    k.buffers[0].dtype = DType::Complex64;
    const auto cuda = emit_cuda(k, "k", {}, cuda_target());
    QVERIFY(!cuda);
    QCOMPARE(QString::fromStdString(cuda.error().line()),
             "codegen.cuda: kernel reversed: CUDA C++ has no code for tensors of complex64");
  }
};

QTEST_GUILESS_MAIN(TestCudaEmit)
#include "test_cuda_emit.moc"
