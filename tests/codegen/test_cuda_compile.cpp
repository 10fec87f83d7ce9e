// Compiling CUDA C++ without a device, and what is read from the machine code. Where neither NVRTC nor nvcc is found,
// the tests that need one are skipped; CUDA_HOME, CUDA_PATH or VIRTUAL_ENV says where it is.
#include <QtTest>
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "codegen/backends.h"
#include "codegen/cuda/compile_cuda.h"
#include "core/store/code_store.h"
#include "tests/support/fx.h"

using namespace partita;
using namespace partita::codegen;

namespace {

/// Many values that live at the same time, in a kernel whose threads may have 32 registers.
std::string spilling_text() {
  std::string text =
      "extern \"C\" __global__ void __launch_bounds__(1024, 2) spills(const float* b, float* a, long long n) {\n";
  const int values = 64;
  for (int i = 0; i < values; ++i) text += fmt::format("  float v{0} = b[{0} * n + threadIdx.x];\n", i);
  text += "  for (long long k = 0; k < n; ++k) {\n";
  for (int i = 0; i < values; ++i)
    text += fmt::format("    v{0} = v{0} * v{1} + v{2};\n", i, (i * 5 + 3) % values, (i + 1) % values);
  text += "  }\n";
  for (int i = 0; i < values; ++i) text += fmt::format("  a[{0} * n + threadIdx.x] = v{0};\n", i);
  return text + "}\n";
}

const char* const two_kernels = R"(
extern "C" __global__ void reverse(float* a) {
  __shared__ float row[256];
  row[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = row[255 - threadIdx.x];
}
extern "C" __global__ void twice(float* a, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i < n) a[i] = a[i] + a[i];
}
)";

bool has(const std::string& text, const char* words) {
  return text.find(words) != text.npos;
}

class TestCudaCompile : public QObject {
  Q_OBJECT

  std::optional<CudaCompiler> compiler_;

 private Q_SLOTS:
  void initTestCase() {
    auto found = find_cuda_compiler();
    if (!found) return qInfo("%s", found.error().message.c_str());
    compiler_ = *std::move(found);
  }

  void compiles_for_each_architecture() {
    if (!compiler_) QSKIP("there is neither NVRTC nor nvcc");
    const auto architectures = cuda_architectures();
    QVERIFY(architectures);
    QCOMPARE(architectures->size(), 2u);
    for (const CudaArchitecture& architecture : *architectures) {
      const auto binary = compile_cuda(*compiler_, two_kernels, architecture);
      QVERIFY2(binary, binary ? "" : binary.error().line().c_str());
      QVERIFY(has(binary->ptx, ".visible .entry reverse"));
      const auto resources = cuda_resources(*binary);
      QVERIFY2(resources, resources ? "" : resources.error().line().c_str());
      QCOMPARE(resources->size(), 2u);
      const CudaResources& reverse = (*resources)[0];
      const CudaResources& twice = (*resources)[1];
      QCOMPARE(reverse.function, std::string("reverse"));
      QCOMPARE(twice.function, std::string("twice"));
      QCOMPARE(reverse.shared_bytes, 1024);
      QCOMPARE(twice.shared_bytes, 0);
      // The bank of arguments begins with what the driver puts there.
      QVERIFY(twice.constant_bytes >= 16);
      QCOMPARE(twice.constant_bytes, reverse.constant_bytes + 8);
      for (const CudaResources& r : *resources) {
        QVERIFY(r.registers > 0 && r.registers <= 32);
        QCOMPARE(r.frame_bytes, 0);
        QCOMPARE(r.spill_stores, 0);
      }
      QCOMPARE(occupancy(twice, 256, 0, architecture).share, 1.0);
    }
  }

  void finds_spills() {
    if (!compiler_) QSKIP("there is neither NVRTC nor nvcc");
    const auto binary = compile_cuda(*compiler_, spilling_text(), *find_cuda_architecture("sm_80"));
    QVERIFY2(binary, binary ? "" : binary.error().line().c_str());
    const auto resources = cuda_resources(*binary);
    QVERIFY(resources);
    QCOMPARE(resources->size(), 1u);
    QCOMPARE(resources->front().registers, 32);
    QVERIFY(resources->front().spill_stores > 0);
    QVERIFY(resources->front().spill_loads > 0);
    QVERIFY(resources->front().frame_bytes > 0);
  }

  void takes_from_the_store() {
    if (!compiler_) QSKIP("there is neither NVRTC nor nvcc");
    Config own = config();
    own.fresh_cache = true;
    const ConfigScope scope(own);
    CodeStore store;
    const CudaArchitecture architecture = *find_cuda_architecture("sm_90");
    const auto first = compile_cuda(*compiler_, two_kernels, architecture, &store);
    QVERIFY(first && !first->from_store);
    const auto again = compile_cuda(*compiler_, two_kernels, architecture, &store);
    QVERIFY(again && again->from_store);
    QCOMPARE(again->cubin, first->cubin);
    QCOMPARE(again->ptx, first->ptx);
    QCOMPARE(cuda_resources(*again)->size(), 2u);
    const auto other = compile_cuda(*compiler_, two_kernels, *find_cuda_architecture("sm_80"), &store);
    QVERIFY(other && !other->from_store);
  }

  void refuses_by_name() {
    Config own = config();
    own.cuda_path = "/nowhere";
    const auto none = find_cuda_compiler(own);
    QVERIFY(!none);
    QCOMPARE(none.error().code, std::string("cuda.compiler"));
    QCOMPARE(none.error().exit_code(), 3);
    QVERIFY(has(none.error().message, "/nowhere, which cuda_path names"));
    const auto unknown = find_cuda_architecture("sm_12");
    QVERIFY(!unknown);
    QVERIFY(has(unknown.error().message, "sm_80"));
    if (!compiler_) QSKIP("there is neither NVRTC nor nvcc");
    const auto bad =
        compile_cuda(*compiler_, "extern \"C\" __global__ void k() { missing(); }\n", *find_cuda_architecture("sm_80"));
    QVERIFY(!bad);
    QCOMPARE(bad.error().code, std::string("cuda.compile"));
    QVERIFY(has(bad.error().message, "missing"));
  }

  void refuses_damaged_binaries() {
    QVERIFY(!cuda_resources({"", "", ""}));
    QVERIFY(!cuda_resources({std::string(100, 'x'), "", ""}));
    if (!compiler_) QSKIP("there is neither NVRTC nor nvcc");
    const auto whole = compile_cuda(*compiler_, two_kernels, *find_cuda_architecture("sm_80"));
    QVERIFY(whole);
    // Behind the table of sections is what only a loader reads.
    for (std::size_t size = 0; size < whole->cubin.size() / 2; size += 7) {
      const auto read = cuda_resources({whole->cubin.substr(0, size), "", ""});
      QVERIFY(!read);
    }
    for (std::size_t at = 0; at < whole->cubin.size(); at += 11) {
      CudaBinary damaged = *whole;
      damaged.cubin[at] = static_cast<char>(damaged.cubin[at] ^ 0xff);
      (void)cuda_resources(damaged);  // reads no byte beyond the end
    }
  }

  /// What `partita kernels --backend cuda-emulate --show` prints of a product with pointwise work and of a reduction.
  void forms_of_a_plan() {
    const auto graph =
        testing::fx("x: <f32[64, 64][64, 1]>", "m = $mm(x, x)\na = $relu(m)\ns = $_softmax(a, 1, False)\nreturn (s,)");
    const StagedCompiler staged = (*find_backend("cuda-emulate"))->stages({});
    const auto planned = staged.plan(*graph);
    QVERIFY2(planned, planned ? "" : planned.error().line().c_str());
    std::string cuda, resources;
    std::vector<std::set<int>> nodes;  // by step
    for (const KernelForm& form : staged.forms)
      for (std::size_t step = 0; step < planned->second.steps.size(); ++step) {
        if (form.name == "sass" || (form.name != "cuda" && form.name != "loops" && !compiler_)) continue;
        const auto text = form.text(planned->second, step);
        QVERIFY2(text, text ? "" : text.error().line().c_str());
        if (!*text) continue;
        QCOMPARE((*text)->lines.size(), static_cast<std::size_t>(std::ranges::count((*text)->text, '\n')));
        if (form.name == "ptx" || form.name == "cuda") {
          // The lines of both come from the same nodes.
          std::set<int> sources;
          for (const std::vector<int>& line : (*text)->lines) sources.insert(line.begin(), line.end());
          QVERIFY(!sources.empty());
          if (form.name == "cuda")
            nodes.push_back(sources);
          else
            QCOMPARE(sources, nodes[step]);
        }
        if (form.name == "cuda") cuda += (*text)->text;
        if (form.name == "resources") resources += (*text)->text;
      }
    QVERIFY(has(cuda, "product of"));
    QVERIFY(has(cuda, "__global__"));
    if (!compiler_) QSKIP("there is neither NVRTC nor nvcc");
    QVERIFY(has(resources, "sm_80"));
    QVERIFY(has(resources, "sm_90"));
  }

  /// As cudaOccMaxActiveBlocksPerMultiprocessor of CUDA 13.0 has them.
  void occupancy_of_blocks() {
    struct Row {
      const char* architecture;
      int registers, shared, threads;
      std::size_t dynamic;
      int blocks;
    };
    for (const Row& row : {
             Row{"sm_75", 32, 0, 256, 0, 4},
             {"sm_75", 40, 1024, 128, 0, 8},
             {"sm_75", 168, 0, 128, 49152, 1},
             {"sm_75", 24, 0, 32, 0, 16},
             {"sm_80", 32, 0, 256, 0, 8},
             {"sm_80", 64, 0, 256, 0, 4},
             {"sm_80", 40, 1024, 128, 0, 12},
             {"sm_80", 96, 0, 384, 0, 1},
             {"sm_80", 168, 0, 128, 49152, 3},
             {"sm_80", 255, 0, 1024, 0, 0},
             {"sm_80", 24, 0, 32, 0, 32},
             {"sm_80", 32, 0, 256, 170000, 0},
             {"sm_86", 32, 0, 256, 0, 6},
             {"sm_86", 168, 0, 128, 49152, 2},
             {"sm_89", 24, 0, 32, 0, 24},
             {"sm_90", 128, 0, 512, 40000, 1},
             {"sm_90", 32, 0, 256, 170000, 1},
             {"sm_90", 72, 512, 96, 1000, 9},
         }) {
      CudaResources kernel;
      kernel.registers = row.registers;
      kernel.shared_bytes = row.shared;
      const auto architecture = *find_cuda_architecture(row.architecture);
      QCOMPARE(occupancy(kernel, row.threads, row.dynamic, architecture).blocks, row.blocks);
    }
    CudaResources kernel;
    kernel.registers = 64;
    const Occupancy half = occupancy(kernel, 256, 0, *find_cuda_architecture("sm_80"));
    QCOMPARE(half.bound, std::string_view("registers"));
    QCOMPARE(half.share, 0.5);
  }
};

}  // namespace

QTEST_GUILESS_MAIN(TestCudaCompile)
#include "test_cuda_compile.moc"
