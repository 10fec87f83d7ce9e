// The texts of CUDA kernels that `partita kernels` and the kernel view show.
#include "codegen/cuda/cuda_forms.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "codegen/cuda/compile_cuda.h"
#include "codegen/cuda/matrix/matrix.h"
#include "codegen/program/kernel_code.h"
#include "codegen/program/kernel_forms.h"
#include "codegen/program/program.h"
#include "core/base/mapped.h"
#include "core/base/output.h"
#include "core/base/scratch.h"
#include "core/base/text.h"
#include "core/load/file.h"
#include "core/process/run.h"
#include "core/store/code_store.h"

namespace partita::codegen {
namespace {

using loops::LinkedText;
using schedule::ExternCall;
using schedule::Plan;

constexpr std::string_view file_name = "kernel_";  // and the kernel's number: what compilers call its text

/// The kernels' text as a compiler takes it.
std::string whole_text(const std::vector<CudaKernel>& kernels) {
  std::string text(cuda_prelude());
  for (std::size_t i = 0; i < kernels.size(); ++i)
    text += fmt::format("\n#line 1 \"{}{}\"\n{}", file_name, i, kernels[i].text);
  return text;
}

/// The number that a text begins with; 0 where there is none.
std::size_t number_at(std::string_view text) {
  std::size_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view blanks = " \t,";
  for (auto from = line.find_first_not_of(blanks); from != line.npos;) {
    const auto to = std::min(line.find_first_of(blanks, from), line.size());
    words.push_back(line.substr(from, to - from));
    from = line.find_first_not_of(blanks, to);
  }
  return words;
}

/// The nodes of a line of a file; nullopt when it is none of the kernels'.
std::optional<std::vector<int>> sources_at(const std::vector<CudaKernel>& kernels, std::string_view file,
                                           std::string_view line) {
  const auto at = file.rfind(file_name);
  if (at == file.npos) return std::nullopt;
  const std::size_t kernel = number_at(file.substr(at + file_name.size())), number = number_at(line);
  if (kernel >= kernels.size() || number == 0) return std::nullopt;
  const auto& lines = kernels[kernel].lines;
  return number <= lines.size() ? lines[number - 1] : std::vector<int>();
}

/// Compiled code is kept in the store: the forms of one kernel, and equal kernels of other graphs, take it from there.
Result<CudaBinary> compiled(const std::vector<CudaKernel>& kernels, const CudaArchitecture& architecture,
                            bool mark_lines = false) {
  TRY(const CudaCompiler compiler, find_cuda_compiler());
  CodeStore store;
  return compile_cuda(compiler, whole_text(kernels), architecture, &store, mark_lines);
}

KernelText cuda_text(const std::vector<CudaKernel>& kernels) {
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

KernelText ptx_text(const std::vector<CudaKernel>& kernels) {
  TRY(const CudaArchitecture architecture, last_architecture());
  TRY(const CudaBinary binary, compiled(kernels, architecture, true));
  const std::vector<std::string_view> lines = lines_of(binary.ptx);
  std::map<std::string_view, std::string_view> files;  // .file 2 "kernel_0"
  for (std::string_view line : lines)
    if (const auto words = words_of(line); words.size() >= 3 && words[0] == ".file") files.emplace(words[1], words[2]);
  LinkedText out;
  std::vector<int> sources;
  for (std::string_view line : lines) {
    // .loc 2 17 5, function_name $L, inlined_at 2 30 3: what is inlined comes from the line that calls it. The words
    // about functions and sections are not shown.
    const auto words = words_of(line);
    if (!words.empty() && words[0] == ".loc" && words.size() >= 3) {
      auto at = sources_at(kernels, files[words[1]], words[2]);
      for (std::size_t i = 3; i + 2 < words.size(); ++i)
        if (words[i] == "inlined_at" && !at) at = sources_at(kernels, files[words[i + 1]], words[i + 2]);
      if (at) sources = *at;
      continue;
    }
    if (!words.empty() && words[0] == ".section") break;
    if (!words.empty() && (words[0] == "}" || words[0] == ".visible")) sources.clear();
    if (words.empty() || words[0] != ".file") out.add(line, sources);
  }
  return std::optional(std::move(out));
}

/// Disassembled by NVIDIA's nvdisasm, which the toolkit and a package of Python have.
KernelText sass_text(const std::vector<CudaKernel>& kernels) {
  TRY(const CudaArchitecture architecture, last_architecture());
  TRY(const CudaCompiler compiler, find_cuda_compiler());
  TRY(const CudaBinary binary, compiled(kernels, architecture, true));
  TRY(const ScratchFolder scratch, ScratchFolder::make("cuda"));
  const std::string file = scratch.path() + "/kernel.cubin";
  TRY_DO(write_file(file, binary.cubin));
  const auto beside = std::filesystem::path(compiler.path).parent_path().parent_path() / "bin" / "nvdisasm";
  for (const std::string& program : {beside.string(), std::string("nvdisasm")}) {
    TRY(const ProcessEnd end, run_program({program, "--print-code", "--print-line-info", file}));
    if (!end.succeeded()) continue;
    LinkedText out;
    std::vector<int> sources;
    for (std::string_view line : lines_of(end.output)) {
      // ## File "kernel_0", line 12 inlined at "kernel_0", line 30
      if (const auto mark = line.find("//## File "); mark != line.npos) {
        std::optional<std::vector<int>> at;
        for (auto from = line.find('"', mark); from != line.npos && !at;) {
          const auto to = line.find('"', from + 1), number = line.find("line ", to);
          if (to == line.npos || number == line.npos) break;
          const auto end = line.find_first_not_of("0123456789", number + 5);
          at = sources_at(kernels, line.substr(from + 1, to - from - 1), line.substr(number + 5, end - number - 5));
          from = line.find('"', number);
        }
        if (at) sources = *at;
        continue;
      }
      if (line.starts_with(".text.")) sources.clear();
      out.add(line, sources);
    }
    return std::optional(std::move(out));
  }
  return unsupported("cuda.disassembler",
                     fmt::format("there is no nvdisasm at {} or in PATH; CUDA's toolkit has it, and "
                                 "NVIDIA's package nvidia-cuda-nvdisasm",
                                 beside.string()));
}

KernelText resources_text(const std::vector<CudaKernel>& kernels) {
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

KernelForm form(const char* name, const char* title, KernelText (*text)(const std::vector<CudaKernel>&)) {
  return {name, title, [text](const Plan& plan, std::size_t step) -> KernelText {
            TRY(const std::vector<CudaKernel> kernels, cuda_kernels_of_step(plan, step));
            if (kernels.empty()) return std::optional<LinkedText>();
            return text(kernels);
          }};
}

}  // namespace

Result<std::vector<CudaKernel>> cuda_kernels_of_step(const Plan& plan, std::size_t step) {
  const auto symbols = mapped(plan.symbols, [](const auto& symbol) { return symbol.first; });
  std::vector<CudaKernel> out;
  if (const auto* call = std::get_if<ExternCall>(&plan.steps[step])) {
    std::string why_not;
    if (auto made = matrix_kernel(context_of(plan, *call), {kernel_symbol(0), symbols, plan.symbols}, why_not)) {
      out.push_back(std::move(made->kernel));
      if (made->does_work) return out;
    }
  }
  TRY(const std::optional<loops::Kernel> kernel, kernel_of_step(plan, step));
  if (kernel) {
    TRY(CudaKernel made, emit_cuda(*kernel, kernel_symbol(out.size()), symbols));
    out.push_back(std::move(made));
  }
  return out;
}

std::vector<KernelForm> cuda_kernel_forms() {
  std::vector<KernelForm> forms = {loops_form()};
  forms.push_back(form("cuda", "CUDA C++", cuda_text));
  forms.push_back(form("ptx", "PTX", ptx_text));
  forms.push_back(form("sass", "machine code", sass_text));
  forms.push_back(form("resources", "registers, memory and occupancy", resources_text));
  return forms;
}

}  // namespace partita::codegen
