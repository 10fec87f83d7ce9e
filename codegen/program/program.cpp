#include "codegen/program/program.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "codegen/cpu/jit.h"
#include "codegen/cuda/emulate.h"
#include "codegen/cuda/library_calls.h"
#include "codegen/cuda/matrix/matrix.h"
#include "codegen/program/epilogue_kernel.h"
#include "codegen/program/kernel_cost.h"
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

/// A kernel's text without lines that say what it was made of, in which equal kernels differ.
std::string without_comments(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    if (!text.starts_with("//")) out += text.substr(0, end);
    text.remove_prefix(end);
  }
  return out;
}

class Maker {
 public:
  Maker(const Plan& plan, const std::shared_ptr<CudaDevice>& device) : plan_(plan), device_(device) {}

  Result<ProgramSource> make() {
    TRY_DO(check_devices(plan_));
    Program& program = out_.program;
    for (const auto& [name, value] : plan_.symbols) program.symbols.push_back(name);
    program.written.resize(plan_.buffers.size());
    for (const auto& step : plan_.steps)
      for (int buffer : written_by(plan_, step)) program.written[static_cast<std::size_t>(buffer)] = true;
    std::vector<int> made(plan_.kernels.size(), -1);
    std::vector<Step> steps;
    for (const auto& step : plan_.steps) {
      if (auto* call = std::get_if<KernelCall>(&step)) {
        int& kernel = made[static_cast<std::size_t>(call->kernel)];
        if (kernel < 0) {
          TRY(kernel, add(plan_.kernels[static_cast<std::size_t>(call->kernel)]));
        }
        steps.emplace_back(KernelCall{kernel, call->buffers});
        continue;
      }
      for (ExternCall& call : parts(std::get<ExternCall>(step))) TRY_DO(add(std::move(call), steps));
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

  static LibraryRoutine routine_of(const ExternCall& call) {
    const OpRecord* record = find_record(call.op);
    return record ? record->library : LibraryRoutine::None;
  }

  ExternContext context_of(const ExternCall& call) const {
    return {.call = call, .routine = routine_of(call), .elements = [this](int b) {
              const SymExpr n = plan_.buffers[static_cast<std::size_t>(b)].elements;
              return n.is_int() ? std::optional(n.as_int()) : std::nullopt;
            }};
  }

  /// Does a library of the device take the call? One of symbolic sizes is prepared for each set of them.
  bool left_to_library(const ExternContext& context) const {
    std::string why_not;
    return device_ && (prepare_on_device(device_, context, why_not).step || why_not == symbolic_sizes);
  }

  /// The call, in parts where a library takes only some of it.
  std::vector<ExternCall> parts(const ExternCall& call) const {
    std::vector<ExternCall> all = parts_for_device(context_of(call));
    if (all.size() == 1 || call.epilogue || !left_to_library(context_of(all[0]))) return {call};
    return all;
  }

  /// Adds a call to the steps, as a kernel of ours if there is one, with its epilogue.
  Status add(ExternCall call, std::vector<Step>& steps) {
    const OpRecord* record = find_record(call.op);
    const std::optional<MatrixCall> matrix = matrix_call(call);
    if (!matrix)
      out_.program.calls.push_back(
          {routine_of(call), call.graph || (record && record->random), call.epilogue != nullptr});
    KernelCall after;
    const bool has_epilogue = call.epilogue && !(matrix && matrix->does_work);
    if (has_epilogue) {
      TRY(const loops::Kernel kernel, epilogue_kernel(plan_, call, after.buffers));
      TRY(after.kernel, add(kernel));
    }
    call.epilogue = nullptr;
    call.epilogue_inputs.clear();
    if (matrix)
      steps.emplace_back(matrix->kernel);
    else
      steps.emplace_back(std::move(call));
    if (has_epilogue) steps.emplace_back(std::move(after));
    return {};
  }

  Result<int> add(const loops::Kernel& kernel) {
    const auto [found, fresh] = known_.emplace(kernel_text(kernel), out_.kernels.size());
    const std::string symbol = kernel_symbol(found->second);
    const bool cuda = plan_.target.device == DeviceType::Cuda;
    if (fresh && cuda) {
      TRY(CudaKernel text, emit_cuda(kernel, symbol, out_.program.symbols));
      out_.cuda.push_back(std::move(text));
    }
    if (fresh) out_.kernels.push_back(kernel);
    out_.program.kernels.push_back({.name = kernel.name,
                                    .entry = cuda ? cuda_entry(out_.cuda[found->second]) : kernel_entry(kernel, symbol),
                                    .bounds = kernel.scalars.bounds(),
                                    .origins = kernel.origins,
                                    .work = kernel_work(kernel),
                                    .simple = clamped_sum(kernel)});
    return static_cast<int>(out_.program.kernels.size()) - 1;
  }

  /// On a device, functions keep the names that they have in the text.
  KernelEntry cuda_entry(const CudaKernel& kernel) const {
    KernelEntry entry = emulated_entry(kernel);
    for (std::size_t i = 0; i < kernel.functions.size() && device_; ++i)
      entry.phases[i].symbol = kernel.functions[i].name;
    return entry;
  }

  /// A call that kernels of our own do on a GPU; nullopt for others.
  struct MatrixCall {
    KernelCall kernel;
    bool does_work = false;  ///< and the call's epilogue
  };
  std::optional<MatrixCall> matrix_call(const ExternCall& call) {
    if (plan_.target.device != DeviceType::Cuda) return std::nullopt;
    const ExternContext context = context_of(call);
    if (left_to_library(context)) return std::nullopt;
    std::string why_not;
    MatrixNames names{"matrix", out_.program.symbols, plan_.symbols};
    std::optional<MatrixKernel> made = matrix_kernel(context, names, why_not);
    constexpr double most_emulated = 4e9;  // operations: about a minute's work
    if (!made || (!device_ && made->operations > most_emulated)) return std::nullopt;
    const auto [found, fresh] = known_.emplace(without_comments(made->kernel.text), out_.kernels.size());
    const std::size_t index = found->second;
    if (fresh) {
      names.symbol = kernel_symbol(index);
      made = matrix_kernel(context, names, why_not);
      out_.kernels.push_back(made->shape);
      out_.cuda.push_back(std::move(made->kernel));
    }
    out_.program.kernels.push_back({.name = made->shape.name,
                                    .entry = cuda_entry(out_.cuda[index]),
                                    .bounds = {},
                                    .origins = made->shape.origins,
                                    .work = {{made->operations, {}}}});
    return MatrixCall{{static_cast<int>(out_.program.kernels.size()) - 1, std::move(made->buffers)}, made->does_work};
  }

  const Plan& plan_;
  const std::shared_ptr<CudaDevice> device_;  ///< null: the CPU runs CUDA kernels
  ProgramSource out_;
  std::unordered_map<std::string, std::size_t> known_;  ///< by the text of a kernel: its number
};

}  // namespace

Result<ProgramSource> make_program(const Plan& plan, const std::shared_ptr<CudaDevice>& device) {
  return Maker(plan, device).make();
}

}  // namespace partita::codegen
