// The texts of CUDA kernels that `partita kernels` and the kernel view show.
#include "codegen/cuda/cuda_forms.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "codegen/cpu/jit.h"
#include "codegen/cpu/kernel_forms.h"
#include "codegen/cuda/compile.h"
#include "codegen/cuda/matrix/matrix.h"
#include "codegen/run_command.h"
#include "core/base/scratch.h"
#include "core/base/text.h"
#include "core/load/file.h"
#include "core/ops/record.h"
#include "core/store/code_store.h"

namespace partita::codegen {
namespace {

using loops::LinkedText;
using schedule::ExternCall;
using schedule::Plan;
using Text = Result<std::optional<LinkedText>>;

/// The kernels' text as a compiler takes it.
std::string whole_text(const std::vector<CudaKernel>& kernels) {
  std::string text(cuda_prelude());
  for (const CudaKernel& k : kernels) text += "\n" + k.text;
  return text;
}

/// Compiled code is kept in the store: the forms of one kernel, and equal kernels of other graphs, take it from there.
Result<CudaBinary> compiled(const std::vector<CudaKernel>& kernels, const CudaArchitecture& architecture) {
  TRY(const CudaCompiler compiler, find_cuda_compiler());
  CodeStore store;
  return compile_cuda(compiler, whole_text(kernels), architecture, &store);
}

Text cuda_text(const std::vector<CudaKernel>& kernels) {
  LinkedText out;
  for (const CudaKernel& k : kernels) {
    const std::vector<std::string_view> lines = lines_of(k.text);
    for (std::size_t i = 0; i < lines.size(); ++i)
      out.add(lines[i], i < k.lines.size() ? k.lines[i] : std::vector<int>());
  }
  return std::optional(std::move(out));
}

Result<CudaArchitecture> last_architecture() {
  TRY(const auto architectures, cuda_architectures());
  if (architectures.empty()) return input_error("cuda.architecture", "the setting cuda_architectures is empty");
  return architectures.back();
}

Text ptx_text(const std::vector<CudaKernel>& kernels) {
  TRY(const CudaArchitecture architecture, last_architecture());
  TRY(const CudaBinary binary, compiled(kernels, architecture));
  LinkedText out;
  for (std::string_view line : lines_of(binary.ptx)) out.add(line);
  return std::optional(std::move(out));
}

/// Disassembled by NVIDIA's nvdisasm, which the toolkit and a package of Python have.
Text sass_text(const std::vector<CudaKernel>& kernels) {
  TRY(const CudaArchitecture architecture, last_architecture());
  TRY(const CudaCompiler compiler, find_cuda_compiler());
  TRY(const CudaBinary binary, compiled(kernels, architecture));
  TRY(const ScratchFolder scratch, ScratchFolder::make("cuda"));
  const std::string file = scratch.path() + "/kernel.cubin", log = scratch.path() + "/kernel.sass";
  TRY_DO(write_file(file, binary.cubin));
  const auto beside = std::filesystem::path(compiler.path).parent_path().parent_path() / "bin" / "nvdisasm";
  for (const std::string& program : {beside.string(), std::string("nvdisasm")}) {
    TRY(const std::optional<int> code, run_command({program, "--print-code", file}, log, "cuda.disassembler"));
    if (!code || *code != 0) continue;
    TRY(const auto told, FileBytes::open(log));
    LinkedText out;
    for (std::string_view line : lines_of(told->text())) out.add(line);
    return std::optional(std::move(out));
  }
  return unsupported("cuda.disassembler",
                     fmt::format("there is no nvdisasm at {} or in PATH; CUDA's toolkit has it, and "
                                 "NVIDIA's package nvidia-cuda-nvdisasm",
                                 beside.string()));
}

Text resources_text(const std::vector<CudaKernel>& kernels) {
  LinkedText out;
  out.add(fmt::format("{:<28} {:<7} {:>12} {:>8} {:>9} {:>6} {:>8} {:>8} {:>10}  {}", "function", "device", "blocks",
                      "threads", "registers", "spills", "shared", "constant", "occupancy", "bound by"));
  TRY(const auto architectures, cuda_architectures());
  for (const CudaArchitecture& architecture : architectures) {
    TRY(const CudaBinary binary, compiled(kernels, architecture));
    TRY(const std::vector<CudaResources> resources, cuda_resources(binary));
    for (const CudaKernel& kernel : kernels)
      for (const CudaFunction& f : kernel.functions) {
        const auto r = std::ranges::find(resources, f.name, &CudaResources::function);
        if (r == resources.end()) continue;
        const Occupancy o = occupancy(*r, f.threads, f.shared_bytes, architecture);
        out.add(fmt::format(
            "{:<28} {:<7} {:>12} {:>8} {:>9} {:>6} {:>8} {:>8} {:>9.0f}%  {}", f.name, architecture.name,
            f.blocks.str(), f.threads, r->registers, r->spill_stores + r->spill_loads,
            static_cast<std::size_t>(r->shared_bytes) + f.shared_bytes, r->constant_bytes, 100 * o.share, o.bound));
      }
  }
  return std::optional(std::move(out));
}

KernelForm form(const char* name, const char* title, Text (*text)(const std::vector<CudaKernel>&)) {
  return {name, title, [text](const Plan& plan, std::size_t step) -> Text {
            TRY(const std::vector<CudaKernel> kernels, cuda_kernels_of_step(plan, step));
            if (kernels.empty()) return std::optional<LinkedText>();
            return text(kernels);
          }};
}

}  // namespace

Result<std::vector<CudaKernel>> cuda_kernels_of_step(const Plan& plan, std::size_t step) {
  std::vector<std::string> symbols;
  for (const auto& [name, value] : plan.symbols) symbols.push_back(name);
  std::vector<CudaKernel> out;
  if (const auto* call = std::get_if<ExternCall>(&plan.steps[step])) {
    const OpRecord* record = find_record(call->op);
    const ExternContext context{
        .call = *call, .routine = record ? record->library : LibraryRoutine::None, .elements = [&](int b) {
          const SymExpr n = plan.buffers[static_cast<std::size_t>(b)].elements;
          return n.is_int() ? std::optional(n.as_int()) : std::nullopt;
        }};
    std::string why_not;
    if (auto made = matrix_kernel(context, {kernel_symbol(0), symbols, plan.symbols}, why_not)) {
      out.push_back(std::move(made->kernel));
      if (made->does_work) return out;
    }
  }
  TRY(const std::optional<loops::Kernel> kernel, kernel_of_step(plan, step));
  if (kernel) {
    TRY(CudaKernel made, emit_cuda(*kernel, kernel_symbol(out.size()), symbols, plan.target));
    out.push_back(std::move(made));
  }
  return out;
}

std::vector<KernelForm> cuda_kernel_forms() {
  std::vector<KernelForm> forms = {cpu_kernel_forms()[0]};  // loop IR
  forms.push_back(form("cuda", "CUDA C++", cuda_text));
  forms.push_back(form("ptx", "PTX", ptx_text));
  forms.push_back(form("sass", "machine code", sass_text));
  forms.push_back(form("resources", "registers, memory and occupancy", resources_text));
  return forms;
}

}  // namespace partita::codegen
