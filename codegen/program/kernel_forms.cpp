#include "codegen/program/kernel_forms.h"

#include <algorithm>
#include <chrono>

#include "codegen/program/epilogue_kernel.h"
#include "codegen/program/machine.h"
#include "core/base/check.h"
#include "core/compare/per_node.h"

namespace partita::codegen {

using schedule::ExternCall;
using schedule::KernelCall;
using schedule::Plan;

Result<std::optional<loops::Kernel>> kernel_of_step(const Plan& plan, std::size_t step) {
  if (const auto* call = std::get_if<KernelCall>(&plan.steps[step]))
    return std::optional(plan.kernels[static_cast<std::size_t>(call->kernel)]);
  const auto& call = std::get<ExternCall>(plan.steps[step]);
  if (!call.epilogue) return std::optional<loops::Kernel>();
  std::vector<int> buffers;
  TRY(loops::Kernel kernel, epilogue_kernel(plan, call, buffers));
  return std::optional(std::move(kernel));
}

KernelForm kernel_form(std::string name, std::string title,
                       std::function<KernelText(const Plan& plan, const loops::Kernel& kernel)> text) {
  return {std::move(name), std::move(title),
          [text = std::move(text)](const Plan& plan, std::size_t step) -> KernelText {
            TRY(const std::optional<loops::Kernel> kernel, kernel_of_step(plan, step));
            if (!kernel) return std::optional<loops::LinkedText>();
            return text(plan, *kernel);
          }};
}

Result<StagedCompiler::Scratch> scratch_of(const Machine& machine, const StagedCompiler::Planned& planned,
                                           const std::set<int>& fixed_inputs) {
  const Plan& plan = planned.second;
  const int threads = std::max(plan.target.threads, 1);
  StagedCompiler::Scratch most;
  Generator generator;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    TRY(const std::optional<loops::Kernel> kernel, kernel_of_step(plan, s));
    if (kernel)
      most.kernels = std::max(most.kernels, machine.scratch_bytes(*kernel) * static_cast<std::size_t>(threads));
    const auto* call = std::get_if<ExternCall>(&plan.steps[s]);
    if (!call || call->graph) continue;
    ExternContext context = context_of(plan, *call);
    context.threads = threads;
    context.generator = &generator;
    context.fixed = [&](int b) {
      const schedule::PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(b)];
      return buffer.kind == schedule::PlanBuffer::Kind::Constant ||
             (buffer.kind == schedule::PlanBuffer::Kind::Input && fixed_inputs.contains(buffer.index));
    };
    std::string why_not;
    TRY(const Prepared prepared, machine.prepare()(context, why_not));
    if (prepared.step) most.calls = std::max(most.calls, prepared.step->scratch_bytes());
  }
  return most;
}

KernelForm loops_form() {
  return kernel_form("loops", "loop IR", [](const Plan&, const loops::Kernel& kernel) -> KernelText {
    return std::optional(print_linked(kernel));
  });
}

Result<StagedCompiler::Measured> measure(const Machine& machine, const StagedCompiler::Planned& planned,
                                         const CompileOptions& options, const std::vector<Value>& inputs,
                                         double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t most_runs = 101, least_runs = 3;
  const auto& [graph, plan] = planned;
  TRY(const auto executable, compile_plan(machine, plan, graph->attributes, options));
  StagedCompiler::Measured out;
  out.steps.resize(plan.steps.size());
  const std::vector<ExternReport>& calls = executable->externs;
  for (std::size_t i = 0, next = 0; i < plan.steps.size(); ++i) {
    const auto* call = std::get_if<ExternCall>(&plan.steps[i]);
    if (!call) continue;
    // A call that a kernel of the machine does is no call of the program; one may be several, or a kernel in part.
    const auto is_its = [&] { return next < calls.size() && calls[next].node == call->origin; };
    out.steps[i].library = is_its() ? calls[next].library : std::string(machine.kernel_name());
    if (is_its()) out.steps[i].why_not = calls[next].why_not;
    while (is_its()) ++next;
  }
  std::set<int> written;
  for (const auto& step : plan.steps)
    for (const int buffer : written_by(plan, step))
      if (const auto& b = plan.buffers[static_cast<std::size_t>(buffer)]; b.kind == schedule::PlanBuffer::Kind::Input)
        written.insert(b.index);
  std::vector<std::vector<double>> times(plan.steps.size());
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (std::size_t run = 0; run < most_runs && (run < least_runs || Clock::now() < end); ++run) {
    // Weights that are elsewhere in each run would be packed in each.
    std::vector<Value> own = inputs;
    for (const int i : written) {
      TRY(std::vector<Value> copy, copy_values({inputs[static_cast<std::size_t>(i)]}));
      own[static_cast<std::size_t>(i)] = std::move(copy[0]);
    }
    std::vector<double> taken;
    executable->step_seconds = &taken;
    TRY_DO(executable->run(own));
    if (run == 0) continue;  // pages are mapped, weights are packed
    CHECK(taken.size() == executable->plan_steps.size());
    std::vector<double> sums(plan.steps.size(), 0);
    for (std::size_t i = 0; i < taken.size(); ++i) sums[executable->plan_steps[i]] += taken[i];
    for (std::size_t i = 0; i < sums.size(); ++i) times[i].push_back(sums[i]);
  }
  executable->step_seconds = nullptr;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto middle = times[i].begin() + static_cast<std::ptrdiff_t>(times[i].size() / 2);
    std::ranges::nth_element(times[i], middle);
    out.steps[i].seconds = *middle;
  }
  TRY(out.results, executable->run(inputs));
  return out;
}

}  // namespace partita::codegen
