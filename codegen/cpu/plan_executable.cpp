#include "codegen/cpu/plan_executable.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/cpu/jit.h"
#include "codegen/cpu/runtime.h"
#include "codegen/cpu/threads.h"
#include "codegen/cuda/emulate_run.h"
#include "core/base/check.h"
#include "core/base/whereabouts.h"
#include "core/ops/evaluate.h"
#include "core/schedule/instantiate.h"
#include "core/tensor/repeated_elements.h"

namespace partita::codegen {
namespace {

using schedule::ExternCall;
using schedule::KernelCall;
using schedule::Plan;
using schedule::PlanBuffer;
using schedule::PlanView;
using Clock = std::chrono::steady_clock;

std::string list(std::span<const std::int64_t> v) {
  return fmt::format("[{}]", fmt::join(v, ", "));
}

bool same_strides(const Tensor& t, const Sizes& strides) {
  for (std::size_t d = 0; d < t.sizes.size(); ++d)
    if (t.sizes[d] > 1 && t.strides[d] != strides[d]) return false;
  return true;
}

/// Provides memory for a result: the last run's if nobody holds it, else new. Its pages are mapped already, which saves
/// half of the time of a memory-bound graph.
Status reuse_or_allocate(std::shared_ptr<Storage>& memory, std::size_t bytes) {
  if (memory && memory.use_count() == 1) {
    std::atomic_thread_fence(std::memory_order_acquire);  // after the last reads by the thread that released it
    return {};
  }
  TRY(memory, Storage::allocate(bytes));
  return {};
}

}  // namespace

Status PlanExecutable::bind_inputs(const std::vector<Value>& values, std::vector<std::shared_ptr<Storage>>& held) {
  if (values.size() != inputs_.size())
    return input_error("run.inputs",
                       fmt::format("{} inputs are given, but the graph takes {}", values.size(), inputs_.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    InputView& input = inputs_[i];
    if (input.buffer < 0) continue;
    auto* t = values[i].get<Tensor>();
    if (!t) return input_error("run.input", fmt::format("input {} is not a tensor", i));
    TRY_DO(reachable(t->device()));
    if (t->dtype != input.meta.dtype)
      return input_error("run.input", fmt::format("input {} is {}, but the graph was compiled for {}", i,
                                                  torch_name(t->dtype), torch_name(input.meta.dtype)));
    if (t->sizes != input.sizes)
      return input_error("run.input",
                         fmt::format("input {} has sizes {}, but the graph was compiled for {}; "
                                     "mark what changes dynamic (torch._dynamo.mark_dynamic) and capture again",
                                     i, list(t->sizes), list(input.sizes)));
    if (input.written && repeats_elements(*t)) return input_error("run.input", repeated_elements);
    auto b = static_cast<std::size_t>(input.buffer);
    std::size_t room = static_cast<std::size_t>(elements[b]) * itemsize(t->dtype);
    bool holds =
        t->numel() == 0 || (t->storage->bytes() >= static_cast<std::size_t>(t->offset) * itemsize(t->dtype) + room);
    if (same_strides(*t, input.strides) && holds) {
      base[b] = t->numel() == 0 ? nullptr : t->data();
      held[b] = t->storage;
      continue;
    }
    TRY_DO(reuse_or_allocate(input.staging, room));
    Tensor copy{input.staging, t->dtype, input.sizes, input.strides, 0};
    copy.copy_from(*t);
    base[b] = input.staging->data();
    held[b] = input.staging;
  }
  return {};
}

/// Copies back inputs that the plan wrote to in a staging copy.
void PlanExecutable::write_back(const std::vector<Value>& values) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const InputView& input = inputs_[i];
    if (!input.written || !input.staging || base[static_cast<std::size_t>(input.buffer)] != input.staging->data())
      continue;
    values[i].get<Tensor>()->copy_from(Tensor{input.staging, input.meta.dtype, input.sizes, input.strides, 0});
  }
}

Diagnostic diagnostic(const KernelFault& fault, const KernelStep& step) {
  if (fault.which != KernelFault::zero_division)
    return loops::out_of_bounds(step.bounds[static_cast<std::size_t>(fault.which)], fault.position);
  return input_error("ops.zero_division", "ZeroDivisionError",
                     {.node = fmt::format("{}", fmt::join(step.origins, ", "))});
}

Status PlanExecutable::run_kernel(KernelStep& step) {
  KernelFault fault;
  for (std::size_t i = 0; i < step.buffers.size(); ++i)
    step.arguments[i] = base[static_cast<std::size_t>(step.buffers[i])];
  for (std::size_t i = 0; i < step.workspace.size(); ++i)
    step.arguments[step.buffers.size() + i] = workspace->data() + step.workspace[i].first;
  step.arguments[step.fault] = &fault;
  std::optional<EmulatedLaunch> launch;
  if (emulated) {
    step.arguments[step.fault + 1] = &launch.emplace();
    for (std::size_t i = 0; i < step.buffers.size(); ++i) {
      const auto b = static_cast<std::size_t>(step.buffers[i]);
      launch->memory.push_back({base[b], static_cast<std::size_t>(elements[b]) * itemsize(buffers[b].dtype)});
    }
    for (const auto& [offset, bytes] : step.workspace) {
      std::memset(workspace->data() + offset, 0xff, bytes);  // NaN, for whoever reads what nobody wrote
      launch->memory.push_back({workspace->data() + offset, bytes});
    }
    launch->memory.push_back({reinterpret_cast<std::byte*>(&fault), sizeof fault});
  }
  struct Context {
    PhaseFunction function;
    void* const* arguments;
    const std::int64_t* symbols;
    std::byte* scratch;
    std::size_t scratch_bytes;
  } context{nullptr, step.arguments.data(), symbols.data(), scratch ? scratch->data() : nullptr, scratch_bytes};
  for (const PhaseStep& phase : step.phases) {
    context.function = phase.function;
    if (launch) launch->begin(phase.iterations);
    auto part = [](void* c, std::int64_t begin, std::int64_t end, int thread) {
      auto* k = static_cast<Context*>(c);
      k->function(k->arguments, k->symbols, k->scratch + k->scratch_bytes * static_cast<std::size_t>(thread), begin,
                  end);
    };
    parallel_for(phase.parts, phase.iterations, 1, phase.alignment, part, &context);
    if (launch && launch->failed)
      return Diagnostic{Fault::Internal,
                        launch->code,
                        fmt::format("kernel {}: {}", step.name, launch->what),
                        {.node = fmt::format("{}", fmt::join(step.origins, ", "))}};
  }
  if (fault.met) return diagnostic(fault, step);
  return {};
}

/// For whoever watches this process: a step that crashes says nothing itself.
void PlanExecutable::note(const Step& step) const {
  if (step.kernel >= 0) {
    const KernelStep& kernel = kernels[static_cast<std::size_t>(step.kernel)];
    return now_at("running kernel " + kernel.name, kernel.origins);
  }
  if (step.external < 0) return;
  const ExternReport& call = externs[static_cast<std::size_t>(step.external)];
  now_at(fmt::format("running {} ({})", call.op, call.library), {&call.node, 1});
}

Status PlanExecutable::begin_on_device() {
  std::vector<KernelDevice::Memory> memory;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const bool constant = buffers[b].kind == PlanBuffer::Kind::Constant;
    memory.push_back({base[b], static_cast<std::size_t>(elements[b]) * itemsize(buffers[b].dtype),
                      constant || buffers[b].kind == PlanBuffer::Kind::Input, constant && !written[b], written[b]});
  }
  return device->begin(memory);
}

Status PlanExecutable::run_on_device(std::size_t kernel) {
  const KernelStep& step = kernels[kernel];
  std::vector<KernelDevice::Launch> launches;
  for (const PhaseStep& phase : step.phases) launches.push_back({phase.symbol, phase.iterations});
  return device->run(
      {kernel, step.name, step.origins, launches, step.buffers, step.workspace, step.workspace_bytes, symbols});
}

/// Gets the results, and reports the first fault.
Status PlanExecutable::end_on_device() {
  std::vector<int> results;
  for (std::size_t b = 0; b < buffers.size(); ++b)
    if (written[b] && buffers[b].kind != PlanBuffer::Kind::Temporary) results.push_back(static_cast<int>(b));
  TRY_DO(device->give_to_host(results, false));
  TRY(const auto faults, device->end(kernels.size()));
  for (std::size_t k = 0; k < faults.size(); ++k) {
    if (!faults[k].met) continue;
    KernelFault fault;
    fault.met = true;
    fault.which = faults[k].which;
    fault.position = faults[k].position;
    return diagnostic(fault, kernels[k]);
  }
  return {};
}

Result<std::vector<Value>> PlanExecutable::run(const std::vector<Value>& inputs) {
  std::lock_guard lock(mutex_);
  if (draws_anew) *generator = Generator();
  std::vector<std::shared_ptr<Storage>> held(buffers.size());
  TRY_DO(bind_inputs(inputs, held));
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].kind != PlanBuffer::Kind::Output) continue;
    TRY_DO(reuse_or_allocate(output_memory[b], static_cast<std::size_t>(elements[b]) * itemsize(buffers[b].dtype)));
    held[b] = output_memory[b];
    base[b] = held[b]->data();
  }
  const bool noted = watched();
  if (device) TRY_DO(begin_on_device());
  for (const Step& step : steps) {
    if (noted) note(step);
    const auto begun = step_seconds ? Clock::now() : Clock::time_point();
    if (step.kernel >= 0) {
      const auto k = static_cast<std::size_t>(step.kernel);
      TRY_DO(device ? run_on_device(k) : run_kernel(kernels[k]));
    } else if (step.external >= 0) {
      if (device) {
        const auto& [read, wrote] = call_buffers[static_cast<std::size_t>(step.external)];
        TRY_DO(device->give_to_host(read, false));
        TRY_DO(device->give_to_host(wrote, true));
      }
      TRY_DO(calls[static_cast<std::size_t>(step.external)]->run(base.data()));
    }
    if (step_seconds) step_seconds->push_back(std::chrono::duration<double>(Clock::now() - begun).count());
  }
  if (device) TRY_DO(end_on_device());
  if (noted) now_at("handing over the results");
  write_back(inputs);
  std::vector<Value> results;
  results.reserve(outputs.size());
  for (const OutputView& out : outputs) {
    if (!out.view) {
      results.push_back(out.value);
      continue;
    }
    auto b = static_cast<std::size_t>(out.view->buffer);
    Tensor t{held[b], out.view->dtype, out.view->sizes, out.view->strides, out.view->offset};
    if (buffers[b].kind == PlanBuffer::Kind::Constant) {
      t.storage = constants[b].storage;
      t.offset += constants[b].offset;
    } else if (buffers[b].kind == PlanBuffer::Kind::Input && base[b]) {
      t.offset += (base[b] - held[b]->data()) / static_cast<std::ptrdiff_t>(itemsize(t.dtype));
    }
    results.push_back(std::move(t));
  }
  return results;
}

}  // namespace partita::codegen
