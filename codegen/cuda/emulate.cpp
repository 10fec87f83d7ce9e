#include "codegen/cuda/emulate.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/cuda/emulate_compiler.h"
#include "codegen/host/processor.h"
#include "core/base/hash.h"
#include "core/base/threads.h"

namespace partita::codegen {

std::string_view emulation_prelude();  // emulate_prelude.cuh

namespace {

namespace fs = std::filesystem;

/// The functions of a kernel as the executor calls them: PARTITA_LAUNCH in emulate_prelude.cuh makes them.
std::string launched(const CudaFunction& f) {
  return f.name + "_blocks";
}

std::string launches(const CudaKernel& kernel, const loops::Kernel& loops) {
  std::vector<std::string> names;
  for (const loops::Buffer& b : loops.buffers)
    if (b.role != loops::Buffer::Role::Scratch)
      names.push_back(fmt::format("{}:{}", b.name, b.role == loops::Buffer::Role::Output ? itemsize(b.dtype) : 0));
  for (std::size_t i = 0; i < kernel.workspace.size(); ++i)
    names.push_back(fmt::format("workspace {}:{}", i, itemsize(kernel.workspace[i].dtype)));
  std::string text;
  for (const CudaFunction& f : kernel.functions)
    text += fmt::format("PARTITA_LAUNCH({}, {}, {}, {}, \"{}\")\n", f.name, f.threads, f.shared_bytes, f.cooperates,
                        fmt::join(names, ","));
  return text;
}

/// Opens the library that holds Clang, once.
Result<CompileEmulation> compiler() {
  static const auto opened = []() -> Result<CompileEmulation> {
    const auto missing = [](const std::string& what) {
      return unsupported("codegen.cuda_emulation", "CUDA kernels cannot run on the CPU: " + what);
    };
    constexpr const char* name = "libpartita_emulation.so";
    std::error_code ignored;
    const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    fs::path found;
    for (const fs::path& folder :
         {here, here.parent_path(), here.parent_path().parent_path(), here.parent_path() / "lib" / "partita"})
      if (found.empty() && fs::exists(folder / name, ignored)) found = folder / name;
    if (found.empty())
      return missing(fmt::format("{} is not beside the program {}; it is built where libclang-19-dev is installed",
                                 name, here.string()));
    void* library = ::dlopen(found.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return missing(fmt::format("{}; install libclang-cpp19", ::dlerror()));
    void* function = ::dlsym(library, compile_emulation_symbol);
    if (!function) return missing(fmt::format("{} is of another version; build it again", found.string()));
    return reinterpret_cast<CompileEmulation>(function);
  }();
  return opened;
}

}  // namespace

KernelEntry emulated_entry(const CudaKernel& kernel) {
  KernelEntry entry = cuda_entry(kernel);
  for (std::size_t i = 0; i < kernel.functions.size(); ++i) entry.phases[i].symbol = launched(kernel.functions[i]);
  return entry;
}

std::string emulation_key(std::span<const CudaKernel> kernels) {
  const Processor& host = host_processor();
  std::string text;
  for (const std::string_view part :
       {std::string_view(host.name), std::string_view(host.features), std::string_view(host.triple),
        std::string_view(PARTITA_EMULATION_HASH), emulation_prelude(), cuda_prelude()})
    add_part(text, part);
  for (const CudaKernel& k : kernels) {
    add_part(text, k.text);
    text += fmt::format("{} functions\n", k.functions.size());
    for (const CudaFunction& f : k.functions)
      text += fmt::format("{} {} {} {}\n", f.name, f.threads, f.shared_bytes, f.cooperates);
  }
  return content_hash(text);
}

Result<ObjectCode> emulate_cuda(std::span<const CudaKernel> kernels, std::span<const loops::Kernel> loops, int threads,
                                bool keep_text) {
  ObjectCode out;
  if (kernels.empty()) return out;
  TRY(const CompileEmulation compile, compiler());
  static const std::string prelude = std::string(emulation_prelude()) + std::string(cuda_prelude());
  // A few kernels are sooner compiled together than apart.
  constexpr std::size_t few = 4;
  const std::size_t count = std::clamp<std::size_t>(kernels.size() / few, 1, static_cast<std::size_t>(threads));
  std::vector<std::string> texts(count);
  for (std::size_t i = 0; i < kernels.size(); ++i)
    texts[i % count] +=
        "#line 1 \"kernel\"\n" + kernels[i].text + "\n#line 1 \"launches\"\n" + launches(kernels[i], loops[i]);
  std::vector<EmulationUnit> units(count);
  for (std::size_t u = 0; u < count; ++u)
    units[u] = {.prelude = prelude,
                .text = texts[u],
                .processor = host_processor().name,
                .features = host_processor().features,
                .keep_text = keep_text};
  {
    TRY_DO(check_threads(static_cast<int>(count)));
    std::vector<std::jthread> others;
    for (std::size_t u = 1; u < count; ++u) others.emplace_back([&, u] { compile(units[u]); });
    compile(units[0]);
  }
  for (EmulationUnit& unit : units) {
    if (!unit.errors.empty())
      return Diagnostic{Fault::Internal, "codegen.cuda_emulation",
                        "the text of a CUDA kernel does not compile: " + unit.errors.substr(0, unit.errors.find('\n'))};
    out.objects.push_back(std::move(unit.object));
    out.ir += unit.ir;
    out.emit_ms += unit.parse_ms;
    out.optimise_ms += unit.optimise_ms;
    out.generate_ms += unit.generate_ms;
  }
  return out;
}

}  // namespace partita::codegen
