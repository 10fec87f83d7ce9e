#include <fmt/format.h>

#include "codegen/program/epilogue_kernel.h"
#include "codegen/program/kernel_cost.h"
#include "codegen/program/machine.h"
#include "core/base/assign.h"
#include "core/ops/record/record.h"

namespace partita::codegen {
namespace {

using schedule::ExternCall;
using schedule::KernelCall;
using schedule::Plan;

Status check_devices(const Plan& plan) {
  const auto refuse = [](const std::string& what, Device device) {
    return unsupported("codegen.device",
                       fmt::format("{} is on {}, and this code is made for the CPU", what, device.str()));
  };
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (const Device d = plan.buffers[b].device; d.type != DeviceType::Cpu)
      return refuse(fmt::format("buffer {}", b), d);
  for (const auto& step : plan.steps)
    if (auto* call = std::get_if<ExternCall>(&step); call && call->device.type != DeviceType::Cpu)
      return refuse(call->op->name, call->device);
  return {};
}

class Maker {
 public:
  Maker(const Machine& machine, const Plan& plan) : plan_(plan), out_{.kernels = machine.source(plan)} {}

  Result<ProgramSource> make() {
    TRY_DO(check_devices(plan_));
    Program& program = out_.program;
    for (const auto& [name, value] : plan_.symbols) program.symbols.push_back(name);
    program.written.resize(plan_.buffers.size());
    for (const auto& step : plan_.steps)
      for (int buffer : written_by(plan_, step)) program.written[static_cast<std::size_t>(buffer)] = true;
    std::vector<int> made(plan_.kernels.size(), -1);
    std::vector<Step> steps;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      if (auto* call = std::get_if<KernelCall>(&plan_.steps[i])) {
        int& kernel = made[static_cast<std::size_t>(call->kernel)];
        if (kernel < 0) TRY_DO(assign(kernel, add(plan_.kernels[static_cast<std::size_t>(call->kernel)])));
        steps.emplace_back(KernelCall{kernel, call->buffers});
      } else {
        for (ExternCall& part : out_.kernels->parts(context_of(plan_, std::get<ExternCall>(plan_.steps[i]))))
          TRY_DO(add(std::move(part), steps));
      }
      out_.plan_steps.resize(steps.size(), i);
    }
    program.plan = {.target = plan_.target,
                    .buffers = plan_.buffers,
                    .kernels = {},
                    .steps = std::move(steps),
                    .outputs = plan_.outputs,
                    .promised = plan_.promised,
                    .inputs = plan_.inputs,
                    .arena_bytes = plan_.arena_bytes,
                    .guards = plan_.guards,
                    .graph = plan_.graph};
    return std::move(out_);
  }

 private:
  using Step = std::variant<KernelCall, ExternCall>;

  /// Adds a call to the steps, as a kernel if the machine has one for it, with its epilogue.
  Status add(ExternCall call, std::vector<Step>& steps) {
    Program& program = out_.program;
    std::optional<CallKernel> own = out_.kernels->add_call(context_of(plan_, call));
    if (own)
      program.kernels.push_back({.name = std::move(own->name),
                                 .entry = std::move(own->entry),
                                 .bounds = {},
                                 .origins = std::move(own->origins),
                                 .work = {{own->operations, {}}}});
    const int kernel = static_cast<int>(program.kernels.size()) - 1;
    const OpRecord* record = find_record(call.op);
    if (!own)
      program.calls.push_back({routine_of(call), call.graph || (record && record->random), call.epilogue != nullptr});
    KernelCall after;
    const bool has_epilogue = call.epilogue && !(own && own->does_work);
    if (has_epilogue) {
      TRY(const loops::Kernel work, epilogue_kernel(plan_, call, after.buffers));
      TRY(after.kernel, add(work));
    }
    call.epilogue = nullptr;
    call.epilogue_inputs.clear();
    if (own)
      steps.emplace_back(KernelCall{kernel, std::move(own->buffers)});
    else
      steps.emplace_back(std::move(call));
    if (has_epilogue) steps.emplace_back(std::move(after));
    return {};
  }

  Result<int> add(const loops::Kernel& kernel) {
    TRY(KernelEntry entry, out_.kernels->add(kernel));
    out_.program.kernels.push_back({.name = kernel.name,
                                    .entry = std::move(entry),
                                    .bounds = kernel.scalars.bounds(),
                                    .origins = kernel.origins,
                                    .work = kernel_work(kernel),
                                    .simple = clamped_sum(kernel)});
    return static_cast<int>(out_.program.kernels.size()) - 1;
  }

  const Plan& plan_;
  ProgramSource out_;
};

}  // namespace

LibraryRoutine routine_of(const ExternCall& call) {
  const OpRecord* record = find_record(call.op);
  return record ? record->library : LibraryRoutine::None;
}

ExternContext context_of(const Plan& plan, const ExternCall& call) {
  return {.call = call, .routine = routine_of(call), .elements = [&plan](int b) {
            const SymExpr n = plan.buffers[static_cast<std::size_t>(b)].elements;
            return n.is_int() ? std::optional(n.as_int()) : std::nullopt;
          }};
}

Result<ProgramSource> make_program(const Machine& machine, const Plan& plan) {
  return Maker(machine, plan).make();
}

}  // namespace partita::codegen
