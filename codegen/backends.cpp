#include "codegen/backends.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/compiler.h"
#include "codegen/cpu/cpu_machine.h"
#include "codegen/cuda/cuda_machine.h"
#include "codegen/torch/column.h"
#include "core/base/check.h"
#include "core/base/mapped.h"
#include "core/compare/rounding.h"
#include "core/interp/debug_interpreter.h"
#include "core/interp/interpreter.h"
#include "core/ops/facts/effects.h"

namespace partita {
namespace {

torch::ColumnOptions column_options(const BackendOptions& options) {
  return {.config = options.config,
          .progress = options.progress,
          .generator = options.generator,
          .inference = options.inference,
          .communicator = options.communicator,
          .times = options.times};
}

InterpOptions interp_options(const BackendOptions& options) {
  InterpOptions out;
  out.threads = options.config.threads;
  out.progress = options.progress;
  out.generator = options.generator;
  out.communicator = options.communicator.get();
  if (!options.config.python_import.empty())
    out.call_unknown = [how = column_options(options)](const Node& node, const std::vector<Value>& args,
                                                       const ValueKwargs& kwargs) {
      return torch::call_operator(node, args, kwargs, how);
    };
  return out;
}

CompileFn interpreter(const Backend&, const BackendOptions& options) {
  return [options = interp_options(options), held = options.communicator](const Graph& graph) -> Result<CompiledFn> {
    return CompiledFn(
        [&graph, options, held](std::vector<Value> inputs) { return interpret(graph, std::move(inputs), options); });
  };
}

CompileFn double_interpreter(const Backend&, const BackendOptions& options) {
  InterpOptions wide = interp_options(options);
  wide.float64 = wide.writes_back = true;
  return [wide, shift = options.shift, held = options.communicator](const Graph& graph) -> Result<CompiledFn> {
    return CompiledFn([&graph, wide, shift, held](std::vector<Value> inputs) {
      return shift ? interpret_shifted(graph, inputs, *shift, true, wide) : interpret(graph, std::move(inputs), wide);
    });
  };
}

CompileFn debug(const Backend&, const BackendOptions& options) {
  return [options = interp_options(options), held = options.communicator](const Graph& graph) -> Result<CompiledFn> {
    return CompiledFn([&graph, options, held](std::vector<Value> inputs) -> Result<std::vector<Value>> {
      TRY(DebugRun run, debug_interpret(graph, std::move(inputs), options));
      if (!run.mismatches.empty()) return mismatch_error(run.mismatches);
      return std::move(run.outputs);
    });
  };
}

CompileFn torch_column(const Backend& backend, const BackendOptions& options) {
  return torch::column(backend.name, column_options(options));
}

std::shared_ptr<const codegen::Machine> gpu() {
  return codegen::cuda_machine(nullptr);
}

constexpr Backend table[] = {
    {"interp", "reference interpreter", interpreter},
    {"debug", "interpreter that checks every value against its node's meta", debug},
    {"f64", "interpreter in double precision", double_interpreter},
    {"cpu", "compiled for this machine", nullptr, codegen::cpu_machine},
    {"cuda", "CUDA kernels on a device; calls that have none on the CPU", nullptr, gpu, DeviceType::Cuda,
     codegen::place_on_device},
    {"cuda-emulate", "CUDA kernels, run on this machine's CPU", nullptr, codegen::emulated_machine, DeviceType::Cuda},
    {"torch:eager", "PyTorch's kernels, called in a Python process", torch_column},
    {"torch:aot_eager", "the same behind PyTorch's AOTAutograd", torch_column},
    {"torch:inductor", "compiled by PyTorch's inductor in a Python process", torch_column},
};

/// A backend that a name like torch:inductor+KEY=VALUE makes. It lives as long as the process.
const Backend* named_column(std::string_view name) {
  static std::mutex one_at_a_time;
  static std::set<std::string, std::less<>> names;
  static std::map<std::string_view, Backend> made;
  const std::lock_guard lock(one_at_a_time);
  const std::string_view kept = *names.emplace(name).first;
  return &made.try_emplace(kept, Backend{kept, "run by PyTorch in a Python process", torch_column}).first->second;
}

}  // namespace

std::span<const Backend> backends() {
  return table;
}

Result<const Backend*> find_backend(std::string_view name) {
  const auto* known = std::ranges::find(table, name, &Backend::name);
  if (known != std::end(table)) return known;
  if (torch::is_column(name)) {
    TRY_DO(torch::check_column(name));
    return named_column(name);
  }
  return input_error("backend.unknown",
                     fmt::format("no backend {}; there are {}", name, fmt::join(mapped(table, &Backend::name), ", ")));
}

const Backend& default_compiler() {
  for (const Backend& b : table)
    if (b.machine) return b;
  CHECK(false, "no compiler among the backends");
}

CompileFn Backend::make(const BackendOptions& options) const {
  return interpreter ? interpreter(*this, options) : compiler(*this, options);
}

Status Backend::start(const BackendOptions& options) const {
  return torch::is_column(name) ? torch::start(options.config, options.progress) : Status();
}

StagedCompiler Backend::stages(const BackendOptions& options) const {
  CHECK(machine, "an interpreter has no stages");
  return compiler_stages(*this, options);
}

std::shared_ptr<const GraphCache> Backend::cache(const BackendOptions& options) const {
  return machine ? compiler_cache(*this, options) : nullptr;
}

void adapt_options(const Backend& backend, AotOptions& options) {
  // Interpreters give eager PyTorch's layouts, in which cuDNN has an algorithm for each gradient in single precision.
  options.choose_layouts = backend.machine && backend.kernels == DeviceType::Cpu;
  options.pack_linears = backend.kernels == DeviceType::Cuda;
}

}  // namespace partita
