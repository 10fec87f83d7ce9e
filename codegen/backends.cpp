#include "codegen/backends.h"

#include <fmt/format.h>

#include "codegen/driver.h"
#include "core/base/check.h"
#include "core/interp/debug_interpreter.h"
#include "core/interp/interpreter.h"

namespace partita {
namespace {

InterpOptions interp_options(const BackendOptions& options) {
  InterpOptions out;
  out.threads = options.config.threads;
  out.progress = options.progress;
  out.generator = options.generator;
  return out;
}

CompileFn interpreter(const BackendOptions& options) {
  return [options = interp_options(options)](const Graph& graph) -> Result<CompiledFn> {
    return CompiledFn(
        [&graph, options](std::vector<Value> inputs) { return interpret(graph, std::move(inputs), options); });
  };
}

CompileFn double_interpreter(const BackendOptions& options) {
  InterpOptions wide = interp_options(options);
  wide.float64 = wide.writes_back = true;
  return [wide](const Graph& graph) -> Result<CompiledFn> {
    return CompiledFn([&graph, wide](std::vector<Value> inputs) { return interpret(graph, std::move(inputs), wide); });
  };
}

CompileFn debug(const BackendOptions& options) {
  return [options = interp_options(options)](const Graph& graph) -> Result<CompiledFn> {
    return CompiledFn([&graph, options](std::vector<Value> inputs) -> Result<std::vector<Value>> {
      TRY(DebugRun run, debug_interpret(graph, std::move(inputs), options));
      if (!run.mismatches.empty()) return mismatch_error(run.mismatches);
      return std::move(run.outputs);
    });
  };
}

/// The compiler that makes CUDA kernels for the CPU to run.
template <auto part>
auto emulated(const BackendOptions& options) {
  BackendOptions own = options;
  own.kernels = DeviceType::Cuda;
  return part(own);
}

/// The same for a device.
template <auto part>
auto on_device(const BackendOptions& options) {
  BackendOptions own = options;
  own.kernels = DeviceType::Cuda;
  own.on_device = true;
  return part(own);
}

constexpr Backend table[] = {
    {"interp", "reference interpreter", interpreter, true},
    {"debug", "interpreter that checks every value against its node's meta", debug, true},
    {"f64", "interpreter in double precision", double_interpreter, true},
    {"cpu", "compiled for this machine", cpu_compiler, false, cpu_stages, cpu_cache},
    {"cuda", "CUDA kernels on a device; calls that have none on the CPU", on_device<cpu_compiler>, false,
     on_device<cpu_stages>, on_device<cpu_cache>, DeviceType::Cuda, place_on_device},
    {"cuda-emulate", "CUDA kernels, run on this machine's CPU", emulated<cpu_compiler>, false, emulated<cpu_stages>,
     emulated<cpu_cache>, DeviceType::Cuda},
};

}  // namespace

std::span<const Backend> backends() {
  return table;
}

Result<const Backend*> find_backend(std::string_view name) {
  std::string names;
  for (const Backend& b : table) {
    if (b.name == name) return &b;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", b.name);
  }
  return input_error("backend.unknown", fmt::format("no backend {}; there are {}", name, names));
}

const Backend& default_compiler() {
  for (const Backend& b : table)
    if (b.stages) return b;
  CHECK(false, "no compiler among the backends");
}

void suit(const Backend& backend, AotOptions& options) {
  // Interpreters give eager PyTorch's layouts, in which cuDNN has an algorithm for each gradient in single precision.
  options.choose_layouts = !backend.takes_any_graph && backend.kernels == DeviceType::Cpu;
  options.pack_linears = backend.kernels == DeviceType::Cuda;
}

}  // namespace partita
