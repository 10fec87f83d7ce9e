// Finds NVRTC or nvcc in toolkits and Python environments, and compiles CUDA C++ to PTX and cubin, without contraction
// of products and sums. The store keeps binaries by text, architecture and compiler.
#include "codegen/cuda/compile_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/cuda/open_library.h"
#include "core/base/archive.h"
#include "core/base/hash.h"
#include "core/base/mapped.h"
#include "core/base/output.h"
#include "core/base/scratch.h"
#include "core/base/text.h"
#include "core/load/file.h"
#include "core/process/run.h"
#include "core/store/code_store.h"

namespace partita::codegen {
namespace {

namespace fs = std::filesystem;

// The options of both compilers. No contraction of products and sums: what the emulation and the CPU compute is what
// the device computes, and text that wants fma says so.
constexpr const char* dialect = "--std=c++17";
constexpr const char* contraction = "--fmad=false";
constexpr const char* with_lines = "--generate-line-info";

/// The parts of NVRTC's interface that are used (nvrtc.h). A function returns 0, or an error for error_string.
struct Nvrtc {
  using Program = void*;
  LibraryFunctions library;
  int (*version)(int* major, int* minor) = library.find("nvrtcVersion");
  const char* (*error_string)(int) = library.find("nvrtcGetErrorString");
  int (*create)(Program*, const char* text, const char* name, int, const char* const*,
                const char* const*) = library.find("nvrtcCreateProgram");
  int (*destroy)(Program*) = library.find("nvrtcDestroyProgram");
  int (*compile)(Program, int count, const char* const* options) = library.find("nvrtcCompileProgram");
  int (*log_size)(Program, std::size_t*) = library.find("nvrtcGetProgramLogSize");
  int (*log)(Program, char*) = library.find("nvrtcGetProgramLog");
  int (*cubin_size)(Program, std::size_t*) = library.find("nvrtcGetCUBINSize");
  int (*cubin)(Program, char*) = library.find("nvrtcGetCUBIN");
  int (*ptx_size)(Program, std::size_t*) = library.find("nvrtcGetPTXSize");
  int (*ptx)(Program, char*) = library.find("nvrtcGetPTX");
};

/// Opens NVRTC; null when the file is not NVRTC, or not for this machine. It stays open.
const Nvrtc* open_nvrtc(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::optional<Nvrtc>> opened;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = opened.try_emplace(path);
  if (!is_new) return entry->second ? &*entry->second : nullptr;
  // NVRTC opens the library of its built-in functions by name, which no search path finds in a Python package: it is
  // opened here first.
  std::error_code ignored;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty())
    for (const auto& file : fs::directory_iterator(folder, ignored))
      if (file.path().filename().string().starts_with("libnvrtc-builtins.so"))
        ::dlopen(file.path().c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  Nvrtc api{LibraryFunctions(library)};
  if (!api.library.missing().empty()) return nullptr;
  entry->second = api;
  return &*entry->second;
}

std::vector<fs::path> children(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) found.push_back(entry.path());
  std::ranges::sort(found, std::greater());  // the newest version first
  return found;
}

/// Where a toolkit or a Python environment keeps libraries and headers.
struct Folders {
  std::vector<fs::path> libraries, includes;
};
Folders folders_in(const fs::path& root) {
  Folders out{{root / "lib64", root / "lib"}, {root / "include"}};
  for (const fs::path& python : children(root / "lib")) {
    if (!python.filename().string().starts_with("python")) continue;
    // CUDA 13 is in one package's folder, nvidia/cu13; before that each library has one.
    for (const fs::path& package : children(python / "site-packages" / "nvidia")) {
      out.libraries.push_back(package / "lib");
      out.includes.push_back(package / "include");
    }
  }
  return out;
}

/// The folders to look into.
std::vector<std::string> roots(const Config& config) {
  if (!config.cuda_path.empty()) return {config.cuda_path};
  std::vector<std::string> roots;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV"})
    if (const char* value = std::getenv(name); value && *value) roots.emplace_back(value);
  roots.emplace_back("/usr/local/cuda");
  return roots;
}

std::vector<std::string> with_headers(const std::vector<fs::path>& folders) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const fs::path& folder : folders)
    if (fs::exists(folder / "cuda_fp16.h", ignored)) found.push_back(folder.string());
  return found;
}

std::optional<CudaCompiler> nvrtc_at(const std::string& path, std::vector<std::string> includes) {
  const Nvrtc* api = open_nvrtc(path);
  int major = 0, minor = 0;
  if (!api || api->version(&major, &minor) != 0) return std::nullopt;
  return CudaCompiler{true, path, std::move(includes), fmt::format("NVRTC {}.{}", major, minor)};
}

/// The words "release 13.0, V13.0.88" of a program that is nvcc.
std::optional<CudaCompiler> nvcc_at(const std::string& path) {
  const auto end = run_program({path, "--version"});
  if (!end || !end->succeeded()) return std::nullopt;
  const std::string_view text = end->output;
  const auto at = text.find("release ");
  if (at == text.npos) return std::nullopt;
  return CudaCompiler{false, path, {}, fmt::format("nvcc {}", text.substr(at, text.find('\n', at) - at))};
}

Diagnostic failed(const CudaCompiler& compiler, std::string_view log) {
  // The first lines that speak of an error; lines of progress come before them.
  std::string words;
  int taken = 0;
  for (const std::string_view line : lines_of(log))
    if ((line.find("error") != line.npos || line.find("fatal") != line.npos) && ++taken <= 3)
      words += fmt::format("{}{}", words.empty() ? "" : " ", line);
  if (words.empty()) words = log.substr(0, 400);
  Diagnostic out = input_error("cuda.compile", fmt::format("{} refuses a kernel: {}", compiler.version, words));
  out.fault = Fault::Internal;
  return out;
}

Result<CudaBinary> by_nvrtc(const CudaCompiler& compiler, const std::string& text, const CudaArchitecture& architecture,
                            bool mark_lines) {
  const Nvrtc* api = open_nvrtc(compiler.path);
  if (!api) return unsupported("cuda.compiler", compiler.path + " cannot be opened any more");
  Nvrtc::Program program = nullptr;
  int error = api->create(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr);
  struct Destroy {
    const Nvrtc* api;
    Nvrtc::Program* program;
    ~Destroy() { api->destroy(program); }
  } const destroy{api, &program};
  std::vector<std::string> options = {"--gpu-architecture=" + architecture.name, dialect, contraction,
                                      "--ptxas-options=-v"};
  if (mark_lines) options.emplace_back(with_lines);
  for (const std::string& folder : compiler.includes) options.push_back("--include-path=" + folder);
  const auto words = mapped(options, &std::string::c_str);
  if (error == 0) error = api->compile(program, static_cast<int>(words.size()), words.data());
  const auto bytes = [&](auto size_of, auto read) {
    std::size_t size = 0;
    std::string out;
    if (size_of(program, &size) == 0 && size > 0) {
      out.resize(size);
      if (read(program, out.data()) != 0) out.clear();
    }
    return out;
  };
  CudaBinary binary;
  binary.log = bytes(api->log_size, api->log);
  while (binary.log.ends_with('\0')) binary.log.pop_back();
  if (error != 0) return failed(compiler, binary.log.empty() ? api->error_string(error) : binary.log);
  binary.cubin = bytes(api->cubin_size, api->cubin);
  binary.ptx = bytes(api->ptx_size, api->ptx);
  while (binary.ptx.ends_with('\0')) binary.ptx.pop_back();
  return binary;
}

Result<CudaBinary> by_nvcc(const CudaCompiler& compiler, const std::string& text, const CudaArchitecture& architecture,
                           bool mark_lines) {
  TRY(const ScratchFolder scratch, ScratchFolder::make("cuda"));
  const std::string base = scratch.path() + "/kernel";
  TRY_DO(write_file(base + ".cu", text));
  const std::string virtual_name = "compute_" + architecture.name.substr(3);
  const auto run = [&](std::vector<std::string> words) -> Result<std::string> {
    if (mark_lines) words.emplace_back(with_lines);
    TRY(ProcessEnd end, run_program(words));
    if (end.how == ProcessEnd::NotFound) return unsupported("cuda.compiler", compiler.path + " is not there any more");
    if (!end.succeeded()) return failed(compiler, end.output);
    return std::move(end.output);
  };
  TRY_DO(run({compiler.path, "--ptx", "--gpu-architecture=" + virtual_name, dialect, contraction, "-o", base + ".ptx",
              base + ".cu"}));
  TRY(std::string words, run({compiler.path, "--cubin", "--gpu-architecture=" + architecture.name, "--ptxas-options=-v",
                              "-o", base + ".cubin", base + ".ptx"}));
  TRY(const auto cubin, FileBytes::open(base + ".cubin"));
  TRY(const auto ptx, FileBytes::open(base + ".ptx"));
  return CudaBinary{std::string(cubin->text()), std::string(ptx->text()), std::move(words), false};
}

}  // namespace

std::vector<std::string> cuda_library_paths(const std::string& name, std::span<const std::string_view> versions,
                                            const Config& config) {
  std::vector<std::string> found;
  for (const std::string& root : roots(config))
    for (const fs::path& folder : folders_in(root).libraries)
      for (const fs::path& file : children(folder))
        if (file.filename().string().starts_with(name)) found.push_back(file.string());
  if (!config.cuda_path.empty()) return found;
  for (const std::string_view version : versions) found.push_back(fmt::format("{}{}", name, version));
  found.push_back(name);
  return found;
}

Result<CudaCompiler> find_cuda_compiler(const Config& config) {
  const std::vector<std::string> roots = codegen::roots(config);
  std::vector<std::string> headers;
  for (const std::string& root : roots) {
    const Folders folders = folders_in(root);
    std::vector<std::string> here = with_headers(folders.includes);
    headers.insert(headers.end(), here.begin(), here.end());
    for (const fs::path& folder : folders.libraries)
      for (const fs::path& file : children(folder))
        if (file.filename().string().starts_with("libnvrtc.so"))
          if (auto found = nvrtc_at(file.string(), here)) return *found;
  }
  if (config.cuda_path.empty())
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
      if (auto found = nvrtc_at(name, headers.empty() ? with_headers({"/usr/include"}) : headers)) return *found;
  std::error_code ignored;
  for (const std::string& root : roots)
    if (const fs::path nvcc = fs::path(root) / "bin" / "nvcc"; fs::exists(nvcc, ignored))
      if (auto found = nvcc_at(nvcc.string())) return *found;
  if (config.cuda_path.empty())
    if (auto found = nvcc_at("nvcc")) return *found;
  return unsupported(
      "cuda.compiler",
      fmt::format("there is neither NVRTC nor nvcc in {}{}; install CUDA's toolkit, or NVIDIA's packages "
                  "nvidia-cuda-nvrtc and nvidia-cuda-runtime in a Python environment that cuda_path "
                  "names",
                  fmt::join(roots, ", "),
                  config.cuda_path.empty() ? " and the system's paths" : ", which cuda_path names"));
}

Result<CudaBinary> compile_cuda(const CudaCompiler& compiler, const std::string& text,
                                const CudaArchitecture& architecture, CodeStore* store, bool mark_lines) {
  std::string parts;
  for (const std::string_view part : std::initializer_list<std::string_view>{
           "cuda", compiler.version, architecture.name, dialect, contraction, mark_lines ? with_lines : "", text})
    add_part(parts, part);
  const std::string key = content_hash(parts);
  if (store)
    if (const auto stored = store->find(key)) {
      CudaBinary binary;
      ArchiveReader reader(*stored);
      reader(binary.cubin, binary.ptx, binary.log);
      binary.from_store = true;
      if (reader.complete()) return binary;
    }
  TRY(CudaBinary binary, compiler.in_process ? by_nvrtc(compiler, text, architecture, mark_lines)
                                             : by_nvcc(compiler, text, architecture, mark_lines));
  if (store) {
    ArchiveWriter writer;
    writer(binary.cubin, binary.ptx, binary.log);
    store->put(key, writer.bytes, architecture.name, "cubin");
  }
  return binary;
}

}  // namespace partita::codegen
