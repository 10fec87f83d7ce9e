#include "codegen/program/executable.h"

#include <chrono>
#include <cstdio>

#include <fmt/format.h>

#include "codegen/program/executor.h"
#include "codegen/program/machine.h"
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
Status load(std::vector<std::string> objects, const Program& program, const Machine& machine, CompiledProgram& out) {
  const auto start = Clock::now();
  TRY(out.code, machine.load(program, objects));
  out.times.link_ms = ms_since(start);
  out.objects = std::move(objects);
  return {};
}

Status load_stored(std::string_view bytes, const Program& program, const Machine& machine, CompiledProgram& out) {
  TRY(std::vector<std::string> objects, unpack(bytes));
  TRY_DO(load(std::move(objects), program, machine, out));
  out.times.from_store = true;
  return {};
}

Status compile_code(const ProgramSource& source, const Machine& machine, const CompileOptions& options,
                    CompiledProgram& out) {
  const KernelSource& kernels = *source.kernels;
  if (kernels.kernels().empty()) return {};
  std::string key;
  if (options.load_code || options.store_code)
    for (const std::string& part : {options.configuration, kernels.key()}) add_part(key, part);
  if (options.load_code && !options.keep_text) {
    if (const auto bytes = options.load_code(key)) {
      const Status fits = load_stored(*bytes, source.program, machine, out);
      if (fits) {
        out.code_key = std::move(key);
        return {};
      }
      std::fprintf(stderr, "partita: warning: stored machine code cannot be used (%s); it is made again\n",
                   fits.error().line().c_str());
    }
  }
  if (watched()) note_kernels(kernels.kernels());
  const auto start = Clock::now();
  TRY(ObjectCode object, kernels.compile(options.keep_text));
  if (object.generate_ms > 0) out.times.compile_ms = ms_since(start);
  out.times.emit_ms = object.emit_ms;
  out.times.optimise_ms = object.optimise_ms;
  out.times.generate_ms = object.generate_ms;
  out.ir = std::move(object.ir);
  out.assembly = std::move(object.assembly);
  if (options.store_code) options.store_code(key, pack(object.objects));
  out.code_key = std::move(key);
  return load(std::move(object.objects), source.program, machine, out);
}

}  // namespace

Result<CompiledProgram> compile_program(const Machine& machine, const schedule::Plan& plan,
                                        const CompileOptions& options) {
  const auto start = Clock::now();
  TRY(ProgramSource source, make_program(machine, plan));
  CompiledProgram out;
  TRY_DO(compile_code(source, machine, options, out));
  out.program = std::make_shared<Program>(std::move(source.program));
  out.plan_steps = std::move(source.plan_steps);
  out.times.total_ms = ms_since(start);
  return out;
}

Result<std::unique_ptr<Executable>> compile_plan(const Machine& machine, const schedule::Plan& plan,
                                                 const std::map<std::string, Tensor>& constants,
                                                 const CompileOptions& options) {
  TRY(CompiledProgram compiled, compile_program(machine, plan, options));
  TRY(auto executable, load_program(compiled.program, plan.symbols, std::move(compiled.code), constants,
                                    {.generator = options.generator,
                                     .compile_sub_graph = options.compile_sub_graph,
                                     .fixed_inputs = options.fixed_inputs,
                                     .device = machine.device(false),
                                     .prepare = machine.prepare()}));
  const double prepare_ms = executable->times.prepare_ms;
  executable->times = compiled.times;
  executable->times.prepare_ms = prepare_ms;
  executable->times.total_ms += prepare_ms;
  executable->ir = std::move(compiled.ir);
  executable->assembly = std::move(compiled.assembly);
  executable->plan_steps = std::move(compiled.plan_steps);
  return executable;
}

}  // namespace partita::codegen
