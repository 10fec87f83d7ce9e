#include "codegen/program/executable.h"

#include <chrono>
#include <cstdio>

#include <fmt/format.h>

#include "codegen/cpu/jit.h"
#include "codegen/cuda/driver.h"
#include "codegen/cuda/emulate.h"
#include "codegen/cuda/emulate_run.h"
#include "codegen/program/executor.h"
#include "codegen/program/kernel_cost.h"
#include "core/base/hash.h"
#include "core/base/whereabouts.h"

namespace partita::codegen {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void note_kernels(const std::vector<loops::Kernel>& kernels) {
  std::vector<std::string> nodes;
  for (const loops::Kernel& k : kernels) nodes.insert(nodes.end(), k.origins.begin(), k.origins.end());
  now_at(fmt::format("compiling {} kernel{}", kernels.size(), kernels.size() == 1 ? "" : "s"), nodes);
}

/// Error when the objects lack what the program's kernels need.
Status load(std::vector<std::string> objects, const Program& program, const CpuOptions& options, CompiledProgram& out) {
  const auto start = Clock::now();
  if (options.device) {
    TRY(out.device_code, load_for(options.device, program.kernels, objects));
  } else {
    TRY(out.code, link_kernels(program, objects));
  }
  out.times.link_ms = ms_since(start);
  out.objects = std::move(objects);
  return {};
}

Status load_stored(std::string_view bytes, const Program& program, const CpuOptions& options, CompiledProgram& out) {
  TRY(std::vector<std::string> objects, unpack(bytes));
  TRY_DO(load(std::move(objects), program, options, out));
  out.times.from_store = true;
  return {};
}

Status compile_code(const ProgramSource& source, const CpuOptions& options, CompiledProgram& out) {
  if (source.kernels.empty()) return {};
  const loops::Target& target = source.program.plan.target;
  const std::vector<std::string>& symbols = source.program.symbols;
  std::string key;
  std::vector<std::string> objects;
  const bool cuda = !source.cuda.empty();
  if (options.load_code || options.store_code)
    for (const std::string& part :
         {options.configuration, options.device ? options.device->architecture().name : std::string(),
          cuda ? emulation_key(source.cuda) : code_key(source.kernels, symbols, target)})
      add_part(key, part);
  if (options.load_code && !options.keep_text) {
    if (const auto bytes = options.load_code(key)) {
      const Status fits = load_stored(*bytes, source.program, options, out);
      if (fits) {
        out.code_key = std::move(key);
        return {};
      }
      std::fprintf(stderr, "partita: warning: stored machine code cannot be used (%s); it is made again\n",
                   fits.error().line().c_str());
    }
  }
  if (options.device) {
    TRY(objects, compile_for(*options.device, source.cuda));
    if (options.store_code) options.store_code(key, pack(objects));
  } else {
    if (watched()) note_kernels(source.kernels);
    const auto start = Clock::now();
    TRY(ObjectCode object,
        cuda ? emulate_cuda(source.cuda, source.kernels, target.threads, options.keep_text)
             : compile_kernels(source.kernels, symbols, {.target = target, .keep_text = options.keep_text}));
    out.times.compile_ms = ms_since(start);
    out.times.emit_ms = object.emit_ms;
    out.times.optimise_ms = object.optimise_ms;
    out.times.generate_ms = object.generate_ms;
    out.ir = std::move(object.ir);
    out.assembly = std::move(object.assembly);
    objects = std::move(object.objects);
    if (options.store_code) options.store_code(key, pack(objects));
  }
  out.code_key = std::move(key);
  return load(std::move(objects), source.program, options, out);
}

}  // namespace

Result<std::unique_ptr<LoadedCode>> link_kernels(const Program& program, std::span<const std::string> objects) {
  const bool cuda = program.plan.target.device == DeviceType::Cuda;
  TRY(auto code, LoadedCode::link(objects, cuda ? emulation_functions() : std::span<const RuntimeFunction>()));
  for (const ProgramKernel& kernel : program.kernels)
    for (const Phase& phase : kernel.entry.phases) TRY_DO(code->find(phase.symbol));
  return code;
}

Result<CompiledProgram> compile_program(const schedule::Plan& plan, const CpuOptions& options) {
  const auto start = Clock::now();
  TRY(ProgramSource source, make_program(plan, options.device));
  CompiledProgram out;
  TRY_DO(compile_code(source, options, out));
  out.program = std::make_shared<Program>(std::move(source.program));
  out.times.total_ms = ms_since(start);
  return out;
}

Result<std::unique_ptr<Executable>> compile_cpu(const schedule::Plan& plan,
                                                const std::map<std::string, Tensor>& constants,
                                                const CpuOptions& options) {
  TRY(CompiledProgram compiled, compile_program(plan, options));
  TRY(auto executable,
      load_program(compiled.program, plan.symbols, std::move(compiled.code), constants,
                   {.generator = options.generator,
                    .compile_sub_graph = options.compile_sub_graph,
                    .fixed_inputs = options.fixed_inputs,
                    .device = options.device ? kernel_device(options.device, compiled.device_code, false) : nullptr,
                    .prepare = plan.target.device == DeviceType::Cuda ? prepare_emulated : prepare_extern}));
  const double prepare_ms = executable->times.prepare_ms;
  executable->times = compiled.times;
  executable->times.prepare_ms = prepare_ms;
  executable->times.total_ms += prepare_ms;
  executable->ir = std::move(compiled.ir);
  executable->assembly = std::move(compiled.assembly);
  return executable;
}

}  // namespace partita::codegen
