#include "codegen/cpu/program.h"

#include <unordered_map>

#include <fmt/format.h>

#include "codegen/cpu/epilogue_kernel.h"
#include "codegen/cpu/jit.h"
#include "codegen/cpu/kernel_cost.h"
#include "codegen/cuda/emulate.h"
#include "core/ops/record.h"

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
  explicit Maker(const Plan& plan) : plan_(plan) {}

  Result<ProgramSource> make() {
    TRY_DO(check_devices(plan_));
    Program& program = out_.program;
    for (const auto& [name, value] : plan_.symbols) program.symbols.push_back(name);
    program.written.resize(plan_.buffers.size());
    for (const auto& step : plan_.steps)
      for (int buffer : written_by(plan_, step)) program.written[static_cast<std::size_t>(buffer)] = true;
    std::vector<int> made(plan_.kernels.size(), -1);
    std::vector<std::variant<KernelCall, ExternCall>> steps;
    for (const auto& step : plan_.steps) {
      if (auto* call = std::get_if<KernelCall>(&step)) {
        int& kernel = made[static_cast<std::size_t>(call->kernel)];
        if (kernel < 0) {
          TRY(kernel, add(plan_.kernels[static_cast<std::size_t>(call->kernel)]));
        }
        steps.emplace_back(KernelCall{kernel, call->buffers});
        continue;
      }
      ExternCall call = std::get<ExternCall>(step);
      const OpRecord* record = find_record(call.op);
      program.calls.push_back({record ? record->library : LibraryRoutine::None,
                               call.graph || (record && record->random), call.epilogue != nullptr});
      KernelCall after;
      if (call.epilogue) {
        TRY(const loops::Kernel kernel, epilogue_kernel(plan_, call, after.buffers));
        TRY(after.kernel, add(kernel));
      }
      const bool has_epilogue = call.epilogue != nullptr;
      call.epilogue = nullptr;
      call.epilogue_inputs.clear();
      steps.emplace_back(std::move(call));
      if (has_epilogue) steps.emplace_back(std::move(after));
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
  Result<int> add(const loops::Kernel& kernel) {
    const auto [found, fresh] = known_.emplace(kernel_text(kernel), out_.kernels.size());
    const std::string symbol = kernel_symbol(found->second);
    const bool cuda = plan_.target.device == DeviceType::Cuda;
    if (fresh && cuda) {
      TRY(CudaKernel text, emit_cuda(kernel, symbol, out_.program.symbols, plan_.target));
      out_.cuda.push_back(std::move(text));
    }
    if (fresh) out_.kernels.push_back(kernel);
    out_.program.kernels.push_back(
        {.name = kernel.name,
         .entry = cuda ? emulated_entry(out_.cuda[found->second]) : kernel_entry(kernel, symbol),
         .bounds = kernel.scalars.bounds(),
         .origins = kernel.origins,
         .work = kernel_work(kernel)});
    return static_cast<int>(out_.program.kernels.size()) - 1;
  }

  const Plan& plan_;
  ProgramSource out_;
  std::unordered_map<std::string, std::size_t> known_;  ///< by the text of a kernel: its number
};

}  // namespace

Result<ProgramSource> make_program(const Plan& plan) {
  return Maker(plan).make();
}

}  // namespace partita::codegen
