// The text of CUDA kernels, and what plans for a GPU compute.
#include <QtTest>
#include <algorithm>
#include <set>

#include "codegen/cuda/cuda_kernel.h"
#include "codegen/cuda/cuda_machine.h"
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

/// `symbols`: those of sizes, which stay symbols.
schedule::Plan planned(const Graph& graph, const std::vector<std::string>& symbols = {}) {
  std::map<std::string, std::int64_t> hints;
  for (const std::string& s : symbols) hints.emplace(s, 24);
  auto plan = schedule::make_plan(graph, {.sizes = hints, .target = cuda_target(), .symbolic = !symbols.empty()});
  if (!plan) qFatal("%s", plan.error().line().c_str());
  return *std::move(plan);
}

CudaKernel emitted(const loops::Kernel& kernel, const std::vector<std::string>& symbols = {}) {
  if (const auto broken = loops::verify(kernel); !broken.empty()) qFatal("%s", broken[0].c_str());
  auto cuda = emit_cuda(kernel, "k", symbols);
  if (!cuda) qFatal("%s", cuda.error().line().c_str());
  return *std::move(cuda);
}

/// The texts of a graph's kernels.
std::string text_of(const char* parameters, const char* lines, const std::vector<std::string>& symbols = {}) {
  std::string text;
  for (const loops::Kernel& k : planned(*testing::fx(parameters, lines), symbols).kernels)
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
     R"cuda(
// k0_mul_add_relu: mul, add, relu
// 125 blocks of 256: a thread for each 4 iterations of i0
extern "C" __global__ void __launch_bounds__(256) k_0(const float* __restrict__ in_x, const float* __restrict__ in_w,
    const float* __restrict__ in_b, float* __restrict__ out_relu, KernelFault* fault) {
  const int v0 = (blockIdx.x * 256 + threadIdx.x) * 4;
  const Pack<float, 4> x = load<4>(in_x + v0);
  const Pack<float, 4> w = load<4>(in_w + v0 % 1000);
  Pack<float, 4> relu;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int i0 = v0 + k;
    relu[k] = Max(x[k] * w[k] + in_b[i0 / 1000], 0.0f);
  }
  store(out_relu + v0, relu);
}
)cuda"},
    {"bools and halves",
     "x: <f16[9][1]>, m: <b8[9][1]>",
     "where = $where.self(m, x, x)\nnot_1 = $logical_not(m)\nreturn (where, not_1)",
     {},
     R"cuda(
// k0_where_not_1: where, not_1
// 1 block of 32: a thread for each iteration of i0
extern "C" __global__ void __launch_bounds__(32) k_0(const Half* __restrict__ in_x,
    const unsigned char* __restrict__ in_m, Half* __restrict__ out_where, unsigned char* __restrict__ out_not_1,
    KernelFault* fault) {
  const int i0 = blockIdx.x * 32 + threadIdx.x;
  if (i0 >= 9) return;
  out_where[i0] = to_half(to_float(in_x[i0]));
  out_not_1[i0] = bit_not(in_m[i0] != 0);
}
)cuda"},
    {"a row in registers",
     "x: <bf16[64, 4096][4096, 1]>",
     "softmax = $_softmax(x, 1, False)\nreturn (softmax,)",
     {},
     R"cuda(
// k0_softmax: softmax
// 64 blocks of 128: a block for each iteration of i0
extern "C" __global__ void __launch_bounds__(128) k_0(const BFloat16* __restrict__ in_x,
    BFloat16* __restrict__ out_softmax, KernelFault* fault) {
  const int i0 = blockIdx.x;
  Pack<float, 8> softmax_row[4];
  Pack<BFloat16, 8> x_row[4];
  float max_0 = -INFINITY;
#pragma unroll
  for (int turn = 0; turn < 4; ++turn) {
    const int v1 = (turn * 128 + threadIdx.x) * 8;
    x_row[turn] = load<8>(in_x + i0 * 4096 + v1);
#pragma unroll
    for (int k = 0; k < 8; ++k)
      max_0 = Max(max_0, to_float(x_row[turn][k]));
  }
  max_0 = block_max(max_0);
  float sum_1 = 0.0f;
#pragma unroll
  for (int turn = 0; turn < 4; ++turn) {
    const int v2 = (turn * 128 + threadIdx.x) * 8;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const float softmax_exp = exp(to_float(x_row[turn][k]) - max_0);
      softmax_row[turn][k] = softmax_exp;
      sum_1 += softmax_exp;
    }
  }
  sum_1 = block_sum(sum_1);
  const float softmax_div = 1.0f / sum_1;
#pragma unroll
  for (int turn = 0; turn < 4; ++turn) {
    const int v3 = (turn * 128 + threadIdx.x) * 8;
    Pack<BFloat16, 8> softmax;
#pragma unroll
    for (int k = 0; k < 8; ++k)
      softmax[k] = to_bfloat16(softmax_row[turn][k] * softmax_div);
    store(out_softmax + i0 * 4096 + v3, softmax);
  }
}
)cuda"},
    {"a long row", "x: <f32[8, 50257][50257, 1]>", "softmax = $_softmax(x, 1, False)\nreturn (softmax,)", {}, R"cuda(
// k0_softmax: softmax
// 8 blocks of 512: a block for each iteration of i0
extern "C" __global__ void __launch_bounds__(512) k_0(const float* __restrict__ in_x, float* __restrict__ out_softmax,
    KernelFault* fault) {
  const int i0 = blockIdx.x;
  float max_0 = -INFINITY;
  for (int i1 = threadIdx.x; i1 < 50257; i1 += 512)
    max_0 = Max(max_0, in_x[i0 * 50257 + i1]);
  max_0 = block_max(max_0);
  float sum_1 = 0.0f;
  for (int i2 = threadIdx.x; i2 < 50257; i2 += 512)
    sum_1 += exp(in_x[i0 * 50257 + i2] - max_0);
  sum_1 = block_sum(sum_1);
  const float softmax_div = 1.0f / sum_1;
  for (int i3 = threadIdx.x; i3 < 50257; i3 += 512)
    out_softmax[i0 * 50257 + i3] = exp(in_x[i0 * 50257 + i3] - max_0) * softmax_div;
}
)cuda"},
    {"a warp for a row", "x: <f32[10, 40][40, 1]>", "sum_1 = $sum.dim_IntList(x, [1])\nreturn (sum_1,)", {}, R"cuda(
// k0_sum_1: sum_1
// 3 blocks of 128: a warp for each iteration of i0
extern "C" __global__ void __launch_bounds__(128) k_0(const float* __restrict__ in_x, float* __restrict__ out_sum_1,
    KernelFault* fault) {
  const int i0 = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (i0 >= 10) return;
  float sum_0 = 0.0f;
  for (int i1 = lane; i1 < 40; i1 += 32)
    sum_0 += in_x[i0 * 40 + i1];
  sum_0 = warp_sum(sum_0);
  if (lane == 0)
    out_sum_1[i0] = sum_0;
}
)cuda"},
    {"columns", "x: <f32[64, 100][100, 1]>", "sum_1 = $sum.dim_IntList(x, [0])\nreturn (sum_1,)", {}, R"cuda(
// k0_sum_1: sum_1
// 1 block of 128: a thread for each iteration of i0
extern "C" __global__ void __launch_bounds__(128) k_0(const float* __restrict__ in_x, float* __restrict__ out_sum_1,
    KernelFault* fault) {
  const int i0 = blockIdx.x * 128 + threadIdx.x;
  if (i0 >= 100) return;
  float sum_0 = 0.0f;
  for (int i1 = 0; i1 < 64; ++i1)
    sum_0 += in_x[i0 + i1 * 100];
  out_sum_1[i0] = sum_0;
}
)cuda"},
    {"scatter",
     "x: <f32[10, 4][4, 1]>, i: <i64[6][1]>, v: <f32[6, 4][4, 1]>",
     "index_put = $index_put(x, [i], v, True)\nreturn (index_put,)",
     {},
     R"cuda(
// k0_index_put: index_put
// 1 block of 64: a thread for each iteration of i0
extern "C" __global__ void __launch_bounds__(64) k_0(const float* __restrict__ in_x, float* __restrict__ out_index_put,
    KernelFault* fault) {
  const int i0 = blockIdx.x * 64 + threadIdx.x;
  if (i0 >= 40) return;
  out_index_put[i0] = in_x[i0];
}
// k1_index_put: index_put
// 1 block of 32: a thread for each iteration of i0
extern "C" __global__ void __launch_bounds__(32) k_0(const float* __restrict__ in_v, const long long* __restrict__ in_i,
    float* __restrict__ out_index_put, KernelFault* fault) {
  const int i0 = blockIdx.x * 32 + threadIdx.x;
  if (i0 >= 24) return;
  const long long i = in_i[i0 / 4];
  const long long index_put_within = within(i < 0LL ? Add(i, 10LL) : i, 10, fault, 0);
  atomic_add(&out_index_put[Mul(index_put_within, 4LL) + i0 % 4], in_v[i0]);
}
)cuda"},
    {"symbolic",
     "x: <f32[s0, s1][s1, 1]>, w: <f32[s1][1]>",
     "mul = $mul.Tensor(x, w)\nreturn (mul,)",
     {"s0", "s1"},
     R"cuda(
// k0_mul: mul
// ((s0*(((s1 + 3)//4)) + 255)//256) blocks of 256: a thread for each 4 iterations of i1
extern "C" __global__ void __launch_bounds__(256) k_0(const float* __restrict__ in_x, const float* __restrict__ in_w,
    float* __restrict__ out_mul, long long s0, long long s1, KernelFault* fault) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= s0 * ((s1 + 3) / 4)) return;
  const long long v1 = i % ((s1 + 3) / 4) * 4;
  const long long i0 = i / ((s1 + 3) / 4);
  const Pack<float, 4> x = load_any<4>(in_x + v1 + i0 * s1, s1 - v1);
  const Pack<float, 4> w = load<4>(in_w + v1, s1 - v1);
  Pack<float, 4> mul;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k >= s1 - v1) break;
    mul[k] = x[k] * w[k];
  }
  store_any(out_mul + v1 + i0 * s1, mul, s1 - v1);
}
)cuda"},
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
    QTest::addColumn<int>("kernels");  // beside calls; -1: any number
    const auto add = [](const char* name, const char* parameters, const char* lines, int kernels = -1) {
      QTest::newRow(name) << parameters << lines << kernels;
    };
    for (const Case& c : texts)
      if (c.symbols.empty()) add(c.name, c.parameters, c.lines);
    add("layer norm", "x: <f32[6, 96][96, 1]>, w: <f32[96][1]>, b: <f32[96][1]>",
        "n = $native_layer_norm(x, [96], w, b, 1e-5)\na: <f32[6, 96][96, 1]> = n[0]\nm: <f32[6, 1][1, 1]> = "
        "n[1]\nreturn (a, m)");
    add("sum of all", "x: <f32[300, 300][300, 1]>", "a = $sum(x)\nreturn (a,)");
    add("rows that overwrite", "x: <f32[5, 64][64, 1]>", "a = $_softmax(x, 1, False)\nc = $copy_(x, a)\nreturn (a,)");
    add("many rows to columns", "x: <f32[1000, 6][6, 1]>", "a = $sum.dim_IntList(x, [0])\nreturn (a,)");
    add("reduced dims apart", "x: <f32[4, 5, 30][150, 30, 1]>", "a = $sum.dim_IntList(x, [0, 2])\nreturn (a,)");
    add("a maximum and its place", "x: <f32[4, 50][50, 1]>",
        "a = $amax(x, [1], True)\nb = $eq.Tensor(x, a)\nc = $argmax(x, 1)\nreturn (a, b, c)");
    add("a stored row read by a later pass only through a value without memory",
        "x: <f32[33, 33][33, 1]>, y: <f32[33, 1][1, 33]>",
        "a = $floor_divide(x, y)\nb = $addcmul(a, y, a)\nc = $std.dim(b, [1])\nreturn (a, c)");
    add("halves that are turned and joined", "x: <f32[6, 8][8, 1]>",
        "a = $slice.Tensor(x, 1, 0, 4)\nb = $slice.Tensor(x, 1, 4, 8)\nn = $neg(b)\nc = $cat([n, a], 1)\nm = "
        "$mul.Tensor(c, x)\nreturn (m,)",
        1);
    add("four parts, one of them empty", "x: <f32[6, 8][8, 1]>",
        "e = $slice.Tensor(x, 1, 3, 3)\na = $slice.Tensor(x, 1, 2, 7)\ns = $sin(x)\nc = $cat([a, e, s, x], 1)\nreturn "
        "(c,)",
        2);  // a value of some weight is not computed for each part
    add("five parts", "x: <f32[6, 8][8, 1]>", "s = $sin(x)\nc = $cat([s, x, x, s, x], 0)\nreturn (c,)");
    add("padded", "x: <f32[6, 8][8, 1]>, y: <f32[9, 9][9, 1]>",
        "p = $constant_pad_nd(x, [1, 0, 2, 1], 0.5)\na = $add.Tensor(p, y)\nreturn (a,)", 1);
    add("padded and cropped", "x: <f32[6, 8][8, 1]>", "p = $constant_pad_nd(x, [-1, 2, 3, -2], 0.5)\nreturn (p,)");
    add("gradient of a slice", "g: <f32[6, 4][4, 1]>, x: <f32[6, 8][8, 1]>",
        "b = $slice_backward(g, [6, 8], 1, 2, 6, 1)\na = $add.Tensor(b, x)\nreturn (a,)", 1);
    add("gradient of a slice with steps", "g: <f32[6, 3][3, 1]>",
        "b = $slice_backward(g, [6, 8], 1, 1, 7, 2)\nreturn (b,)");
    add("gradient of a row", "g: <f32[8][1]>", "b = $select_backward(g, [6, 8], 0, -2)\nreturn (b,)", 1);
    add("sums over images and rows", "x: <f32[2, 128, 20][2560, 20, 1]>",
        "s = $sin(x)\na = $sum.dim_IntList(s, [0, 1], True)\nreturn (s, a)", 2);
    add("sums over images of one row", "x: <f32[2, 1, 160, 20][3200, 3200, 20, 1]>",
        "a = $sum.dim_IntList(x, [0, 1, 2])\nreturn (a,)", 2);
    add("products of a copy", "x: <f32[2, 4, 8, 8][256, 64, 8, 1]>",
        "p = $permute(x, [0, 2, 1, 3])\nc = $clone(p, memory_format = torch.contiguous_format)\nv = $view(c, [16, "
        "32])\nt = $t(v)\na = $mm(t, v)\nb = $mm(v, t)\nreturn (a, b)",
        1);
    add("a convolution's bias and what follows",
        "x: <f32[1, 2, 5, 5][50, 25, 5, 1]>, w: <f32[3, 2, 3, 3][18, 9, 3, 1]>, b: <f32[3][1]>",
        "c = $convolution(x, w, b, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)\nr = $relu(c)\nreturn (r,)", 0);
    add("a number", "x: <f32[]>", "a = $exp(x)\nreturn (a,)");
    add("nothing", "x: <f32[0, 4][4, 1]>", "a = $exp(x)\nb = $sum.dim_IntList(x, [0])\nreturn (a, b)");
  }
  void values() {
    QFETCH(QString, parameters);
    QFETCH(QString, lines);
    const auto graph = testing::fx(parameters.toStdString(), lines.toStdString());
    QFETCH(int, kernels);
    schedule::Plan plan = planned(*graph);
    if (kernels >= 0) QCOMPARE(plan.kernels.size(), static_cast<std::size_t>(kernels));
    emulated_machine()->place(plan);
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
    const char* const lines = "a = $index_put(x, [i], v, True)\nreturn (a,)";
    QVERIFY(has(text_of(parameters, lines), "atomic_add("));
    Config config = partita::config();
    config.deterministic = true;
    const ConfigScope scope(config);
    QVERIFY(!has(text_of(parameters, lines), "atomic_add("));
  }

  void refused() {
    loops::Kernel k = loops::testing::reversed(4);
    k.buffers[0].dtype = DType::Float8E4M3FN;
    const auto cuda = emit_cuda(k, "k", {});
    QVERIFY(!cuda);
    QCOMPARE(cuda.error().code, std::string("codegen.cuda"));
    QCOMPARE(QString::fromStdString(cuda.error().line()),
             "kernel reversed: CUDA C++ has no code for tensors of float8_e4m3fn");
  }
};

QTEST_GUILESS_MAIN(TestCudaEmit)
#include "test_cuda_emit.moc"
