// Convolutions, attention and scans with symbolic sizes: one CUDA kernel gives for all sizes what the interpreter
// gives, under the emulation. Where Clang's library or CUDA's compiler is missing, what needs it is skipped.
#include <QtTest>

#include <fmt/format.h>

#include "codegen/backends.h"
#include "codegen/cuda/compile_cuda.h"
#include "codegen/cuda/cuda_machine.h"
#include "codegen/program/program.h"
#include "core/aot/pipeline.h"
#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "core/schedule/make_plan.h"
#include "core/schedule/specialise.h"
#include "tests/codegen/cuda_tools.h"
#include "tests/support/fx.h"

using namespace partita;
using namespace partita::codegen;
using namespace partita::testing;

namespace {

using SymbolValues = std::map<std::string, std::int64_t>;

struct Row {
  const char* name;
  const char* parameters;
  const char* lines;
  std::vector<SymbolValues> sizes;  ///< the first are hints
  double tolerance = 1e-5;          ///< as in test_cuda_matrix.cpp: what rounding to the factors' dtype may cost
  bool tf32 = false;
};

constexpr double half = 0x1p-10, tf32 = 0x1p-8;

const char* const images =
    "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[s0, 4, s1, s1][4*s1**2, s1**2, s1, 1]>, w: <f32[6, 4, 3, 3][36, 9, 3, 1]>, "
    "b: <f32[6][1]>";
const char* const heads =
    "s0: 'Sym(s0)', s1: 'Sym(s1)', q: <f32[s0, 2, s1, 16][32*s1, 16*s1, 16, 1]>, k: <f32[s0, 2, s1, 16][32*s1, 16*s1, "
    "16, 1]>, v: <f32[s0, 2, s1, 16][32*s1, 16*s1, 16, 1]>";
const std::vector<SymbolValues> image_sizes = {
    {{"s0", 3}, {"s1", 9}}, {{"s0", 2}, {"s1", 24}}, {{"s0", 7}, {"s1", 5}}, {{"s0", 33}, {"s1", 6}}};
const std::vector<SymbolValues> row_counts = {
    {{"s0", 2}, {"s1", 20}}, {{"s0", 3}, {"s1", 64}}, {{"s0", 5}, {"s1", 3}}, {{"s0", 2}, {"s1", 97}}};

const std::vector<SymbolValues> lengths = {
    {{"s0", 3}, {"s1", 40}}, {{"s0", 2}, {"s1", 2300}}, {{"s0", 5}, {"s1", 7}}, {{"s0", 40}, {"s1", 129}}};

std::string with(std::string text, const std::string& word, const std::string& by) {
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + by.size()))
    text.replace(at, word.size(), by);
  return text;
}

const std::string half_heads = with(heads, "f32", "f16");
const std::string attends =
    "a = $_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, CAUSAL, scale = 0.3)\no = a[0]\nl = a[1]\n";
const std::string attends_back =
    attends +
    "g = $sin(o)\nb = $_scaled_dot_product_flash_attention_for_cpu_backward(g, q, k, v, o, l, 0.0, CAUSAL, scale = "
    "0.3)\ndq = b[0]\ndk = b[1]\ndv = b[2]\nreturn (dq, dk, dv)";
const std::string forward = attends + "return (o, l)", forward_all = with(forward, "CAUSAL", "False"),
                  forward_causal = with(forward, "CAUSAL", "True"),
                  backward_all = with(attends_back, "CAUSAL", "False"),
                  backward_causal = with(attends_back, "CAUSAL", "True");

const Row rows[] = {
    {"convolution", images, "y = $convolution(x, w, b, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)\nreturn (y,)",
     image_sizes},
    {"convolution with a stride", images,
     "y = $convolution(x, w, b, [2, 2], [1, 1], [1, 2], False, [0, 0], 1)\nreturn (y,)", image_sizes},
    {"convolution of groups",
     "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[s0, 4, s1, s1][4*s1**2, s1**2, s1, 1]>, w: <f32[6, 2, 3, 3][18, 9, 3, 1]>",
     "y = $convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 2)\nreturn (y,)", image_sizes},
    {"transposed convolution",
     "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[s0, 6, s1, s1][6*s1**2, s1**2, s1, 1]>, w: <f32[6, 4, 3, 3][36, 9, 3, 1]>",
     "y = $convolution(x, w, None, [2, 2], [1, 1], [1, 1], True, [1, 1], 1)\nreturn (y,)", image_sizes},
    {"convolution of rows",
     "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f16[s0, 4, s1][4*s1, s1, 1]>, w: <f16[6, 4, 3][12, 3, 1]>",
     "y = $convolution(x, w, None, [1], [1], [1], False, [0], 1)\nreturn (y,)", image_sizes, half},
    {"gradients of a convolution", images,
     "y = $convolution(x, w, b, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)\ng = $sin(y)\n"
     "c = $convolution_backward(g, x, w, [6], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])\n"
     "dx = c[0]\ndw = c[1]\ndb = c[2]\nreturn (dx, dw, db)",
     image_sizes},
    {"gradients of a convolution with a stride", images,
     "y = $convolution(x, w, b, [2, 2], [1, 1], [1, 1], False, [0, 0], 1)\ng = $sin(y)\n"
     "c = $convolution_backward(g, x, w, [6], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])\n"
     "dx = c[0]\ndw = c[1]\ndb = c[2]\nreturn (dx, dw, db)",
     image_sizes},
    {"gradients of a transposed convolution",
     "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[s0, 6, s1, s1][6*s1**2, s1**2, s1, 1]>, w: <f32[6, 4, 3, 3][36, 9, 3, 1]>",
     "y = $convolution(x, w, None, [2, 2], [1, 1], [1, 1], True, [1, 1], 1)\ng = $sin(y)\n"
     "c = $convolution_backward(g, x, w, None, [2, 2], [1, 1], [1, 1], True, [1, 1], 1, [True, True, False])\n"
     "dx = c[0]\ndw = c[1]\nreturn (dx, dw)",
     image_sizes},
    {"attention", heads, forward_all.c_str(), row_counts},
    {"causal attention", heads, forward_causal.c_str(), row_counts},
    {"attention of halves", half_heads.c_str(), forward_causal.c_str(), row_counts, half},
    {"attention in TF32", heads, forward_all.c_str(), row_counts, tf32, true},
    {"attention to other rows",
     "s0: 'Sym(s0)', s1: 'Sym(s1)', q: <f32[2, 3, s0, 16][48*s0, 16*s0, 16, 1]>, k: <f32[2, 3, s1, 16][48*s1, 16*s1, "
     "16, 1]>, v: <f32[2, 3, s1, 16][48*s1, 16*s1, 16, 1]>",
     forward_all.c_str(), row_counts},
    {"attention with a mask",
     "s0: 'Sym(s0)', s1: 'Sym(s1)', q: <f32[s0, 2, s1, 16][32*s1, 16*s1, 16, 1]>, k: <f32[s0, 2, s1, 16][32*s1, 16*s1, "
     "16, 1]>, v: <f32[s0, 2, s1, 16][32*s1, 16*s1, 16, 1]>, m: <f32[s0, 1, s1, s1][s1**2, s1**2, s1, 1]>",
     "a = $_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, False, attn_mask = m)\no = a[0]\nreturn (o,)",
     row_counts},
    {"attention's gradients", heads, backward_all.c_str(), row_counts},
    {"causal attention's gradients", heads, backward_causal.c_str(), row_counts},
    {"attention's gradients of halves", half_heads.c_str(), backward_causal.c_str(), row_counts, half},
    {"attention's gradients in TF32", heads, backward_all.c_str(), row_counts, tf32, true},
    {"running sums, and what follows", "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[s0, s1][s1, 1]>, y: <f32[s0, s1][s1, 1]>",
     "a = $cumsum(x, 1)\nb = $mul.Tensor(a, y)\nr = $relu(b)\nreturn (r,)", lengths},
    {"running extremes of rows that lie apart", "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[s1, s0, 3][3*s0, 3, 1]>",
     "a = $cummax(x, 0)\nv = a[0]\ni = a[1]\nl = $logcumsumexp(x, 0)\nreturn (v, i, l)", lengths},
    {"parts of which a guard knows the size",
     "s1: 'Sym(s1)', x: <f32[1, 7][7, 1]>, y: <f32[1, s1][s1, 1]>",
     "z = $cat([x, y])\nreturn (z,)",
     {{{"s1", 7}}}},
};

std::unique_ptr<Graph> graph_of(const Row& row) {
  auto graph = fx(row.parameters, row.lines);
  if (!graph->shapes) graph->shapes = std::make_shared<ShapeEnv>();
  for (const auto& [symbol, hint] : row.sizes.front()) graph->shapes->set_hint(symbol, hint);
  return graph;
}

class TestCudaSymbolic : public QObject {
  Q_OBJECT

  CudaTools tools_;

 private Q_SLOTS:
  void initTestCase() {
    if (!tools_.find()) QSKIP("neither Clang's library nor CUDA's compiler is here");
  }

  void kernels_serve_all_sizes_data() {
    QTest::addColumn<int>("index");
    for (int i = 0; i < static_cast<int>(std::size(rows)); ++i) QTest::newRow(rows[i].name) << i;
  }
  void kernels_serve_all_sizes() {
    QFETCH(int, index);
    const Row& row = rows[index];
    Config own = config();
    own.cuda_tf32 = row.tf32;
    const ConfigScope scope(own);
    kernels_take_symbols(row);
    if (!tools_.emulates || QTest::currentTestFailed()) return;
    const auto graph = graph_of(row);
    std::vector<SizeCompilation> compilations;
    BackendOptions options;
    options.on_sizes = [&](const SizeCompilation& c) { compilations.push_back(c); };
    const auto run = (*find_backend("cuda-emulate"))->make(options)(*graph);
    QVERIFY2(run, run ? "" : run.error().line().c_str());
    for (const SymbolValues& sizes : row.sizes) {
      Graph parameters;
      parameters.shapes = graph->shapes;
      for (const Node* p : graph->placeholders()) parameters.placeholder(p->name(), p->meta);
      parameters.set_output(Arg::tuple({}));
      const auto special = schedule::specialise(parameters, sizes);
      QVERIFY2(special, special ? "" : special.error().line().c_str());
      const auto inputs = random_inputs(**special, 3);
      QVERIFY2(inputs, inputs ? "" : inputs.error().line().c_str());
      const auto expected = interpret(*graph, *inputs), found = (*run)(*inputs);
      QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
      QVERIFY2(found, found ? "" : found.error().line().c_str());
      QCOMPARE(found->size(), expected->size());
      for (std::size_t i = 0; i < found->size(); ++i) {
        const Tensor &a = *(*found)[i].get<Tensor>(), &b = *(*expected)[i].get<Tensor>();
        QCOMPARE(a.sizes, b.sizes);
        for (std::int64_t j = 0; j < b.numel(); ++j) {
          const double x = a.item_as_double(j), y = b.item_as_double(j);
          QVERIFY2(std::fabs(x - y) <= row.tolerance * (1 + std::fabs(y)),
                   fmt::format("result {} [{}]: {} beside {}", i, j, x, y).c_str());
        }
      }
    }
    QCOMPARE(compilations.size(), std::size_t{1});
    QVERIFY2(compilations[0].kind == SizeCompilation::Kind::Symbolic, compilations[0].why_not.c_str());
  }

 private:
  /// No call is left, and the text compiles.
  void kernels_take_symbols(const Row& row) {
    const auto graph = graph_of(row);
    QVERIFY(prepare_post_grad(*graph));
    auto plan = schedule::make_plan(
        *graph, {.sizes = row.sizes.front(), .target = emulated_machine()->target(1), .symbolic = true});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    emulated_machine()->place(*plan);
    plan->symbols = row.sizes.front();
    const auto source = make_program(*emulated_machine(), *plan);
    QVERIFY2(source, source ? "" : source.error().line().c_str());
    QVERIFY2(source->program.calls.empty(), "a call has no kernel");
    if (!tools_.compiler) return;
    std::string text(cuda_prelude());
    for (const CudaKernel& k : cuda_kernels(*source)) text += k.text;
    const auto binary = compile_cuda(*tools_.compiler, text, *find_cuda_architecture("sm_80"));
    QVERIFY2(binary, binary ? "" : binary.error().line().c_str());
    const auto resources = cuda_resources(*binary);
    QVERIFY2(resources, resources ? "" : resources.error().line().c_str());
    for (const CudaResources& r : *resources) QVERIFY2(r.spill_stores == 0, r.function.c_str());
  }
};

}  // namespace

QTEST_GUILESS_MAIN(TestCudaSymbolic)
#include "test_cuda_symbolic.moc"
