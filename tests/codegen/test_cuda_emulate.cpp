// CUDA kernels on the CPU: planted faults are found, and graphs give what interpreters give. Where Clang's library is
// missing, the tests that compile are skipped.
#include <QtTest>

#include "codegen/backends.h"
#include "codegen/cuda/cuda_machine.h"
#include "codegen/cuda/emulate.h"
#include "codegen/cuda/emulate_run.h"
#include "codegen/host/link.h"
#include "core/schedule/make_plan.h"
#include "tests/support/close.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::codegen;
using namespace partita::testing;

namespace {

/// The reverse of each row by shared memory, and its sum by shuffles.
const char* const reverse_and_sum =
    R"(extern "C" __global__ void k(const float* in, float* out, float* sums, long long n, KernelFault* fault) {
  __shared__ float row[64];
  __shared__ float parts[2];
  row[threadIdx.x] = in[blockIdx.x * n + threadIdx.x];
  __syncthreads();
  const float mine = row[n - 1 - threadIdx.x];
  out[blockIdx.x * n + threadIdx.x] = mine;
  float sum = mine;
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(0xffffffff, sum, lane);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&sums[0], parts[0] + parts[1]);
}
)";

struct Planted {
  const char* name;
  const char* before;  ///< in reverse_and_sum
  const char* after;
  const char* code;  ///< of the error; null: none
  std::vector<const char*> words;
};
const Planted rows[] = {
    {"right", "", "", nullptr, {}},
    {"race",
     "  __syncthreads();\n  const",
     "\n  const",
     "codegen.cuda_race",
     {"thread 32 of block 0 writes 4 bytes at line 4", "byte 128", "which thread 31 reads at line 6", "no barrier"}},
    {"race within a warp",
     "  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;\n",
     "  if (threadIdx.x % 32 < 2) parts[threadIdx.x / 32] = sum;\n",
     "codegen.cuda_race",
     {"thread 1 of block 0 writes", "which thread 0 writes at line 10"}},
    {"race of an atomic operation with a load",
     "atomicAdd(&sums[0], parts[0] + parts[1])",
     "atomicAdd(&sums[0], 1.0f); atomicAdd(&parts[0], 1.0f); if (threadIdx.x == 33) out[0] = parts[0]",
     "codegen.cuda_race",
     {"thread 33 of block 0 reads 4 bytes at line 12", "from byte 256 on, which thread 0 writes at line 12"}},
    {"race of two blocks",
     "out[blockIdx.x * n + threadIdx.x] =",
     "out[threadIdx.x] =",
     "codegen.cuda_race",
     {"thread 0 of block 1 writes 4 bytes at line 7 of out, from byte 0 on, which thread 0 of block 0 writes at line "
      "7"}},
    {"race of blocks that add without an atomic operation",
     "atomicAdd(&sums[0], parts[0] + parts[1])",
     "sums[0] += parts[0] + parts[1]",
     "codegen.cuda_race",
     {"thread 0 of block 1 reads 4 bytes at line 12 of sums, from byte 0 on, which thread 0 of block 0 writes"}},
    {"race of a block on memory that is not shared",
     "float sum = mine;",
     "float sum = out[blockIdx.x * n + 63 - threadIdx.x];",
     "codegen.cuda_race",
     {"thread 32 of block 0 writes 4 bytes at line 7 of out, from byte 128 on, which thread 31 reads at line 8"}},
    {"barrier that some leave out",
     "  __syncthreads();\n  if",
     "  if (threadIdx.x < 60) __syncthreads();\n  if",
     "codegen.cuda_barrier",
     {"waits for the block at line 11", "ended without it"}},
    {"two barriers",
     "  __syncthreads();\n  if",
     "  if (threadIdx.x < 32) __syncthreads();\n  else\n    __syncthreads();\n  if",
     "codegen.cuda_barrier",
     {"thread 0 of block 0 waits for the block at line 11, but thread 32 at line 13"}},
    {"exchange with lanes that ended",
     "  float sum = mine;\n",
     "  float sum = mine;\n  if (threadIdx.x % 32 > 7) return;\n",
     "codegen.cuda_barrier",
     {"waits at line 10 for the lanes 0xffffffff of its warp, but thread 8 has ended"}},
    {"lane that is not among those named",
     "__shfl_down_sync(0xffffffff",
     "__shfl_down_sync(0x0000ffff",
     "codegen.cuda_barrier",
     {"thread 16 of block 0 is not among the lanes 0x0000ffff"}},
    {"store past the end",
     "out[blockIdx.x * n + threadIdx.x] =",
     "out[blockIdx.x * n + threadIdx.x + 1] =",
     "codegen.cuda_bounds",
     {"thread 63 of block 2 writes 4 bytes at line 7, at byte 768 of out, which has 768"}},
    {"load before the beginning",
     "in[blockIdx.x * n + threadIdx.x]",
     "in[blockIdx.x * n + threadIdx.x - 2LL]",
     "codegen.cuda_bounds",
     {"thread 0 of block 0 reads 4 bytes at line 4, at byte -8 of in, which has 768"}},
    {"load past shared memory",
     "row[n - 1 - threadIdx.x]",
     "row[n + 4000 - threadIdx.x]",
     "codegen.cuda_bounds",
     {"reads 4 bytes at line 6", "of shared memory"}},
    {"vector that is not aligned",
     "= in[blockIdx.x * n + threadIdx.x];",
     "= ((const float2*)(in + 1))[threadIdx.x / 4].x;",
     "codegen.cuda_alignment",
     {"at line 4, at an address that is no multiple of 8"}},
    {"trap",
     "  float sum = mine;\n",
     "  float sum = mine;\n  if (threadIdx.x == 5) __trap();\n",
     "codegen.cuda_trap",
     {"thread 5 of block 0 traps at line 9"}},
};

/// Memory that the kernel writes, but for the one named "in".
loops::Kernel memory_of(std::initializer_list<const char*> names) {
  using Role = loops::Buffer::Role;
  loops::Kernel kernel;
  for (const std::string name : names)
    kernel.buffers.push_back({.name = name, .role = name == "in" ? Role::Input : Role::Output});
  return kernel;
}

class TestCudaEmulate : public QObject {
  Q_OBJECT

  bool missing_ = false;

 private Q_SLOTS:
  void initTestCase() {
    const CudaKernel empty{.text = "\n", .functions = {}, .workspace = {}};
    const loops::Kernel none;
    const auto object = emulate_cuda({&empty, 1}, {&none, 1}, 1, false);
    missing_ = !object && object.error().code == "codegen.cuda_emulation" && object.error().fault == Fault::Unsupported;
    if (missing_) qInfo("%s", object.error().line().c_str());
  }

  void planted_faults_are_found_data() {
    QTest::addColumn<int>("row");
    for (std::size_t i = 0; i < std::size(rows); ++i) QTest::newRow(rows[i].name) << static_cast<int>(i);
  }

  void planted_faults_are_found() {
    if (missing_) QSKIP("Clang's library is missing");
    QFETCH(int, row);
    const Planted& planted = rows[row];
    CudaKernel kernel{.text = reverse_and_sum,
                      .functions = {{.name = "k", .blocks = 3, .threads = 64, .cooperates = true}},
                      .workspace = {}};
    const std::size_t at = kernel.text.find(planted.before);
    QVERIFY(at != std::string::npos);
    kernel.text.replace(at, std::strlen(planted.before), planted.after);
    const loops::Kernel loops = memory_of({"in", "out", "sums"});
    const auto object = emulate_cuda({&kernel, 1}, {&loops, 1}, 1, false);
    QVERIFY2(object, object ? "" : object.error().line().c_str());
    const auto code = link_code(object->objects, emulation_functions());
    QVERIFY2(code, code ? "" : code.error().line().c_str());

    // With gaps, so that what lies beyond one is none of the others.
    struct Memory {
      alignas(16) float before[4], in[3 * 64], between[4], out[3 * 64], after[4], sum;
    } memory = {};
    auto& [before, in, between, out, after, sum] = memory;
    float expected = 0;
    for (int i = 0; i < 3 * 64; ++i) expected += in[i] = static_cast<float>(i % 17);
    KernelFault fault;
    EmulatedLaunch launch;
    launch.memory = {{reinterpret_cast<std::byte*>(in), sizeof in},
                     {reinterpret_cast<std::byte*>(out), sizeof out},
                     {reinterpret_cast<std::byte*>(&sum), sizeof sum},
                     {reinterpret_cast<std::byte*>(&fault), sizeof fault}};
    launch.blocks = 3;
    void* arguments[] = {in, out, &sum, &fault, &launch};
    const std::int64_t symbols[] = {64};
    const auto entry = emulated_entry(kernel);
    const auto function = (*code)->find(entry.phases[0].symbol);
    QVERIFY(function);
    reinterpret_cast<PhaseFunction>(*function)(arguments, symbols, nullptr, 0, 3);
    QCOMPARE(std::string(launch.error.code), std::string(planted.code ? planted.code : ""));
    for (const char* word : planted.words)
      QVERIFY2(launch.error.what.find(word) != std::string::npos, (launch.error.what + "\nlacks: " + word).c_str());
    if (planted.code) return;
    QCOMPARE(sum, expected);
    for (int b = 0; b < 3; ++b)
      for (int i = 0; i < 64; ++i) QCOMPARE(out[b * 64 + i], in[b * 64 + 63 - i]);
  }

  /// The words of CUDA that the prelude has, each against what it must give.
  void exchanges_and_votes() {
    if (missing_) QSKIP("Clang's library is missing");
    const CudaKernel kernel{.text = R"(extern "C" __global__ void k(int* out, KernelFault* fault) {
  extern __shared__ int dynamic[];
  const int lane = threadIdx.x;
  int* mine = out + lane * 16;
  mine[0] = __shfl_sync(0xffffffff, lane * 10, 5);
  mine[1] = __shfl_up_sync(0xffffffff, lane, 3);
  mine[2] = __shfl_down_sync(0xffffffff, lane, 3);
  mine[3] = __shfl_xor_sync(0xffffffff, lane, 7);
  mine[4] = __shfl_sync(0xffffffff, lane, 9, 8);
  mine[5] = __shfl_down_sync(0xffffffff, lane, 3, 8);
  mine[6] = (int)__ballot_sync(0xffffffff, lane % 3 == 0);
  mine[7] = __any_sync(0xffffffff, lane == 31) + 2 * __all_sync(0xffffffff, lane < 31);
  mine[8] = __syncthreads_count(lane < 10);
  dynamic[lane] = lane;
  __syncwarp();
  mine[9] = dynamic[31 - lane];
  mine[10] = (int)__shfl_xor_sync(0xffffffff, 1LL << (lane + 8), 1) != 0;
  mine[11] = lane < 16 ? __shfl_xor_sync(0x0000ffff, lane, 1) : __shfl_xor_sync(0xffff0000, lane, 2);
  mine[12] = __popc(__match_any_sync(0xffffffff, lane / 4));
  mine[13] = atomicAdd(&out[15], 1) >= 0;
  mine[14] = (int)(blockDim.x + gridDim.x + blockIdx.x);
}
)",
                            .functions = {{.name = "k", .threads = 32, .shared_bytes = 128, .cooperates = true}},
                            .workspace = {}};
    const loops::Kernel loops = memory_of({"out"});
    const auto object = emulate_cuda({&kernel, 1}, {&loops, 1}, 1, false);
    QVERIFY2(object, object ? "" : object.error().line().c_str());
    const auto code = link_code(object->objects, emulation_functions());
    QVERIFY2(code, code ? "" : code.error().line().c_str());
    int out[32 * 16] = {};
    KernelFault fault;
    EmulatedLaunch launch;
    launch.memory = {{reinterpret_cast<std::byte*>(out), sizeof out},
                     {reinterpret_cast<std::byte*>(&fault), sizeof fault}};
    launch.blocks = 1;
    void* arguments[] = {out, &fault, &launch};
    reinterpret_cast<PhaseFunction>(*(*code)->find("k_blocks"))(arguments, nullptr, nullptr, 0, 1);
    QVERIFY2(!launch.failed, launch.error.what.c_str());
    unsigned thirds = 0;
    for (int lane = 0; lane < 32; lane += 3) thirds |= 1u << lane;
    for (int lane = 0; lane < 32; ++lane) {
      const int* mine = out + lane * 16;
      QCOMPARE(mine[0], 50);
      QCOMPARE(mine[1], lane < 3 ? lane : lane - 3);
      QCOMPARE(mine[2], lane > 28 ? lane : lane + 3);
      QCOMPARE(mine[3], lane ^ 7);
      QCOMPARE(mine[4], lane / 8 * 8 + 1);
      QCOMPARE(mine[5], lane % 8 > 4 ? lane : lane + 3);
      QCOMPARE(static_cast<unsigned>(mine[6]), thirds);
      QCOMPARE(mine[7], 1);
      QCOMPARE(mine[8], 10);
      QCOMPARE(mine[9], 31 - lane);
      QCOMPARE(mine[10], lane < 24 ? 1 : 0);
      QCOMPARE(mine[11], lane < 16 ? lane ^ 1 : lane ^ 2);
      QCOMPARE(mine[12], 4);
      QCOMPARE(mine[13], 1);
      QCOMPARE(mine[14], 33);
    }
    QCOMPARE(out[15], 32);
  }

  void graphs_give_what_the_interpreter_gives_data() {
    QTest::addColumn<QString>("parameters");
    QTest::addColumn<QString>("lines");
    QTest::newRow("pointwise") << "x: <f32[300][1]>" << "a: <f32[300][1]> = $gelu(x)\nreturn (a,)";
    QTest::newRow("softmax") << "x: <f32[7, 300][300, 1]>"
                             << "a: <f32[7, 300][300, 1]> = $_softmax(x, 1, False)\nreturn (a,)";
    QTest::newRow("row with gaps") << "x: <f32[256][2]>"
                                   << "v: <f32[][]> = $var.correction(x)\na: <f32[256][1]> = $add.Tensor(x, v)\n"
                                      "return (a,)";
    QTest::newRow("columns") << "x: <f32[700, 9][9, 1]>"
                             << "a: <f32[9][1]> = $sum.dim_IntList(x, [0])\nreturn (a,)";
    QTest::newRow("half") << "x: <f16[40, 40][40, 1]>"
                          << "e: <f16[40, 40][40, 1]> = $exp(x)\na: <f16[40][1]> = $sum.dim_IntList(e, [1])\n"
                             "return (a,)";
    QTest::newRow("complex")
        << "x: <f32[20, 2][2, 1]>"
        << "z: <c64[20][1]> = $view_as_complex(x)\nm: <c64[20][1]> = $mul.Tensor(z, z)\n"
           "c: <c64[20][1]> = $_conj_physical(z)\nn: <c64[20][1]> = $neg(c)\n"
           "d: <c64[20][1]> = $div.Tensor(n, m)\ns: <c64[20][1]> = $sub.Tensor(d, 2)\n"
           "a: <c64[20][1]> = $add.Tensor(s, z, alpha = 3)\nv: <c64[4, 5][5, 1]> = $view(a, [4, 5])\n"
           "p: <c64[5, 4][1, 5]> = $permute(v, [1, 0])\nq: <c64[5, 4][1, 5]> = $mul.Tensor(p, p)\n"
           "r: <f32[5, 4, 2][2, 10, 1]> = $view_as_real(q)\nreturn (r,)";
    QTest::newRow("magnitudes") << "x: <f32[20, 2][2, 1]>"
                                << "z: <c64[20][1]> = $view_as_complex(x)\nm: <c64[20][1]> = $mul.Tensor(z, 0.5)\n"
                                   "a: <f32[20][1]> = $abs(m)\nreturn (a,)";
    QTest::newRow("reductions of complex numbers")
        << "x: <f32[6, 50, 2][100, 2, 1]>"
        << "z: <c64[6, 50][50, 1]> = $view_as_complex(x)\ne: <c64[6, 50][50, 1]> = $exp(z)\n"
           "s: <c64[6, 1][1, 1]> = $sum.dim_IntList(e, [1], True)\nt: <c64[6, 1][1, 1]> = $tanh(s)\n"
           "v: <f32[50][1]> = $var.correction(e, [0], correction = 1)\n"
           "n: <f32[6, 1][1, 1]> = $linalg_vector_norm(e, 2, [1], True)\n"
           "p: <c64[1, 50][50, 1]> = $prod.dim_int(z, 0, True)\n"
           "a: <c64[6, 50][50, 1]> = $mul.Tensor(t, p)\nb: <c64[6, 50][50, 1]> = $mul.Tensor(a, v)\n"
           "c: <c64[6, 50][50, 1]> = $div.Tensor(b, n)\nj: <c64[12, 50][50, 1]> = $cat([c, e])\n"
           "r: <f32[12, 50, 2][100, 2, 1]> = $view_as_real(j)\nreturn (r,)";
    QTest::newRow("functions of complex numbers")
        << "x: <f32[60, 2][2, 1]>"
        << "z: <c64[60][1]> = $view_as_complex(x)\na: <c64[60][1]> = $log(z)\nb: <c64[60][1]> = $sqrt(a)\n"
           "c: <c64[60][1]> = $sin(b)\nd: <c64[60][1]> = $atan(c)\ne: <c64[60][1]> = $sigmoid(d)\n"
           "f: <c64[60][1]> = $pow.Tensor_Tensor(z, e)\ng: <c64[60][1]> = $sgn(f)\nh: <c64[60][1]> = $rsqrt(f)\n"
           "i: <c64[60][1]> = $mul.Tensor(h, g)\nr: <f32[60, 2][2, 1]> = $view_as_real(i)\nreturn (r,)";
    QTest::newRow("call") << "x: <f32[8, 8][8, 1]>"
                          << "m: <f32[8, 8][8, 1]> = $mm(x, x)\na: <f32[8, 8][8, 1]> = $relu(m)\nreturn (a,)";
  }

  void graphs_give_what_the_interpreter_gives() {
    if (missing_) QSKIP("Clang's library is missing");
    QFETCH(QString, parameters);
    QFETCH(QString, lines);
    const auto graph = fx(parameters.toStdString(), lines.toStdString());
    const TensorMeta& meta = *(*graph->begin())->meta.tensor();
    Sizes sizes;
    for (const SymExpr& s : meta.sizes) sizes.push_back(s.as_int());
    std::int64_t count = 1;
    for (const std::int64_t s : sizes) count *= s;
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i * 37 % 101) / 50 - 1);
    const std::vector<Value> inputs = {tensor(meta.dtype, sizes, numbers)};
    std::vector<std::vector<Value>> results;
    for (const char* name : {"interp", "cuda-emulate"}) {
      const auto backend = find_backend(name);
      QVERIFY(backend);
      const auto compiled = (*backend)->make({})(*graph);
      QVERIFY2(compiled, compiled ? "" : compiled.error().line().c_str());
      auto result = (*compiled)(inputs);
      QVERIFY2(result, result ? "" : result.error().line().c_str());
      results.push_back(*std::move(result));
    }
    const std::string difference = wrong(results[0][0], results[1][0], default_tolerance(meta.dtype));
    QVERIFY2(difference.empty(), difference.c_str());
  }

  /// The kernels of a graph, compiled for the CPU in a GPU's place.
  static ProgramSource program_of(const Graph& graph, const std::map<std::string, std::int64_t>& symbols = {}) {
    auto plan = schedule::make_plan(
        graph, {.sizes = symbols, .target = emulated_machine()->target(1), .symbolic = !symbols.empty()});
    if (!plan) qFatal("%s", plan.error().line().c_str());
    emulated_machine()->place(*plan);
    plan->symbols = symbols;
    auto made = make_program(*emulated_machine(), *plan);
    if (!made) qFatal("%s", made.error().line().c_str());
    return *std::move(made);
  }

  /// What follows a product or a convolution is in its kernel, in sums by parts, too.
  void epilogues_data() {
    QTest::addColumn<QString>("parameters");
    QTest::addColumn<QString>("lines");
    QTest::newRow("bias, gelu and what is added")
        << "x: <f32[40, 70][70, 1]>, w: <f32[70, 33][33, 1]>, b: <f32[33][1]>, y: <f32[40, 33][33, 1]>"
        << "m: <f32[40, 33][33, 1]> = $addmm(b, x, w)\ng: <f32[40, 33][33, 1]> = $gelu(m)\n"
           "a: <f32[40, 33][33, 1]> = $add.Tensor(g, y)\nreturn (a,)";
    QTest::newRow("silu of halves") << "x: <bf16[4, 50, 64][3200, 64, 1]>, w: <bf16[4, 64, 40][2560, 40, 1]>"
                                    << "m: <bf16[4, 50, 40][2000, 40, 1]> = $bmm(x, w)\n"
                                       "g: <bf16[4, 50, 40][2000, 40, 1]> = $silu(m)\nreturn (g,)";
    QTest::newRow("relu of parts") << "x: <f32[5, 2000][2000, 1]>, w: <f32[2000, 7][7, 1]>"
                                   << "m: <f32[5, 7][7, 1]> = $mm(x, w)\n"
                                      "g: <f32[5, 7][7, 1]> = $relu(m)\nreturn (g,)";
    QTest::newRow("images, scaled and added")
        << "x: <f32[2, 3, 9, 8][216, 72, 8, 1]>, w: <f32[5, 3, 3, 3][27, 9, 3, 1]>, b: <f32[5][1]>, "
           "y: <f32[2, 5, 9, 8][360, 72, 8, 1]>"
        << "m: <f32[2, 5, 9, 8][360, 72, 8, 1]> = $convolution(x, w, b, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)\n"
           "a: <f32[2, 5, 9, 8][360, 72, 8, 1]> = $add.Tensor(m, y, alpha = 0.5)\n"
           "r: <f32[2, 5, 9, 8][360, 72, 8, 1]> = $relu(a)\nreturn (r,)";
  }
  void epilogues() {
    if (missing_) QSKIP("Clang's library is missing");
    QFETCH(QString, parameters);
    QFETCH(QString, lines);
    const auto graph = fx(parameters.toStdString(), lines.toStdString());
    const ProgramSource program = program_of(*graph);
    QCOMPARE(program.program.plan.steps.size(), std::size_t{1});
    QVERIFY(program.program.calls.empty());
    std::vector<Value> inputs;
    DType dtype = DType::Float32;
    for (const Node* node : *graph) {
      if (!node->is_placeholder()) break;
      const TensorMeta& meta = *node->meta.tensor();
      Sizes sizes;
      std::int64_t count = 1;
      for (const SymExpr& size : meta.sizes) sizes.push_back(size.as_int()), count *= size.as_int();
      std::vector<double> numbers;
      for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i * 37 % 101) / 50 - 1);
      inputs.emplace_back(tensor(meta.dtype, sizes, numbers));
      dtype = meta.dtype;
    }
    std::vector<std::vector<Value>> results;
    for (const char* name : {"interp", "cuda-emulate"}) {
      const auto compiled = (*find_backend(name))->make({})(*graph);
      QVERIFY2(compiled, compiled ? "" : compiled.error().line().c_str());
      auto result = (*compiled)(inputs);
      QVERIFY2(result, result ? "" : result.error().line().c_str());
      results.push_back(*std::move(result));
    }
    const std::string difference = wrong(results[0][0], results[1][0], default_tolerance(dtype));
    QVERIFY2(difference.empty(), difference.c_str());
    // The plan's steps are timed, though the program has others.
    const StagedCompiler staged = (*find_backend("cuda-emulate"))->stages({});
    const auto planned = staged.plan(*graph);
    QVERIFY2(planned, planned ? "" : planned.error().line().c_str());
    const auto measured = staged.measure(*planned, inputs, 0);
    QVERIFY2(measured, measured ? "" : measured.error().line().c_str());
    QCOMPARE(measured->steps.size(), planned->second.steps.size());
    for (const StepMeasure& step : measured->steps) QVERIFY(step.seconds > 0 && step.library == "CUDA kernel");
  }

  /// Symbols are arguments of matrix kernels, which give what the interpreter gives for other sizes, too.
  void matrix_kernels_with_symbolic_sizes() {
    if (missing_) QSKIP("Clang's library is missing");
    const auto graph =
        fx("s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[s0, s1, 24][24*s1, 24, 1]>, w: <f32[24, 40][40, 1]>, "
           "b: <f32[40][1]>",
           "v: <f32[s0*s1, 24][24, 1]> = $view(x, [-1, 24])\nm: <f32[s0*s1, 40][40, 1]> = $addmm(b, v, w)\n"
           "g: <f32[s0*s1, 40][40, 1]> = $relu(m)\ny: <f32[s0, s1, 40][40*s1, 40, 1]> = $view(g, [s0, s1, 40])\n"
           "t: <f32[s0, 40, s1][40*s1, 1, 40]> = $permute(y, [0, 2, 1])\n"
           "a: <f32[s0, s1, s1][s1*s1, s1, 1]> = $bmm(y, t)\nreturn (a,)");
    if (!graph->shapes) graph->shapes = std::make_shared<ShapeEnv>();
    graph->shapes->set_hint("s0", 3);
    graph->shapes->set_hint("s1", 17);
    const ProgramSource program = program_of(*graph, {{"s0", 3}, {"s1", 17}});
    QVERIFY(program.program.calls.empty());
    QCOMPARE(program.program.symbols.size(), std::size_t{2});
    std::vector<CompiledFn> compiled;
    for (const char* name : {"interp", "cuda-emulate"}) {
      auto made = (*find_backend(name))->make({})(*graph);
      QVERIFY2(made, made ? "" : made.error().line().c_str());
      compiled.push_back(*std::move(made));
    }
    for (const std::int64_t rows : {17, 80, 5}) {
      const std::int64_t batch = rows == 5 ? 7 : 3;
      const auto numbers = [](std::int64_t count) {
        std::vector<double> v;
        for (std::int64_t i = 0; i < count; ++i) v.push_back(static_cast<double>(i * 37 % 101) / 50 - 1);
        return v;
      };
      const std::vector<Value> inputs = {
          batch, rows, tensor(DType::Float32, {batch, rows, 24}, numbers(batch * rows * 24)),
          tensor(DType::Float32, {24, 40}, numbers(24 * 40)), tensor(DType::Float32, {40}, numbers(40))};
      const auto expected = compiled[0](inputs), found = compiled[1](inputs);
      QVERIFY2(expected && found, found ? "" : found.error().line().c_str());
      const std::string difference = wrong((*expected)[0], (*found)[0], default_tolerance(DType::Float32));
      QVERIFY2(difference.empty(), difference.c_str());
    }
  }

  /// Rows begin at a multiple of 16 bytes for some sizes only.
  void packs_with_symbolic_sizes() {
    if (missing_) QSKIP("Clang's library is missing");
    const auto graph =
        fx("s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[s0, s1][s1, 1]>, w: <f32[s1][1]>",
           "a: <f32[s0, s1][s1, 1]> = $mul.Tensor(x, w)\nb: <f32[s0, s1][s1, 1]> = $_softmax(a, 1, False)\n"
           "c: <f32[s0, s1][s1, 1]> = $add.Tensor(x, w)\nreturn (b, c)");
    if (!graph->shapes) graph->shapes = std::make_shared<ShapeEnv>();
    graph->shapes->set_hint("s0", 6);
    graph->shapes->set_hint("s1", 300);
    std::vector<CompiledFn> compiled;
    for (const char* name : {"interp", "cuda-emulate"}) {
      auto made = (*find_backend(name))->make({})(*graph);
      QVERIFY2(made, made ? "" : made.error().line().c_str());
      compiled.push_back(*std::move(made));
    }
    for (const std::int64_t columns : {300, 301, 302, 9}) {
      std::vector<double> numbers(static_cast<std::size_t>(6 * columns));
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i * 37 % 101) / 50 - 1;
      const Value x = tensor(DType::Float32, {6, columns}, numbers);
      numbers.resize(static_cast<std::size_t>(columns));
      const std::vector<Value> inputs = {std::int64_t{6}, columns, x, tensor(DType::Float32, {columns}, numbers)};
      const auto expected = compiled[0](inputs), found = compiled[1](inputs);
      QVERIFY2(expected && found, found ? "" : found.error().line().c_str());
      for (std::size_t i = 0; i < 2; ++i) {
        const std::string difference = wrong((*expected)[i], (*found)[i], default_tolerance(DType::Float32));
        QVERIFY2(difference.empty(), difference.c_str());
      }
    }
  }
};

}  // namespace

QTEST_GUILESS_MAIN(TestCudaEmulate)
#include "test_cuda_emulate.moc"
