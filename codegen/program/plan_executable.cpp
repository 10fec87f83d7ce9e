// Runs a prepared program: binds inputs, copied if they lie otherwise in memory, runs kernels and calls in order, here
// or on a device, reports faults, and hands out results. Memory of results that nobody holds is used again.
#include "codegen/program/plan_executable.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/assign.h"
#include "core/base/check.h"
#include "core/base/threads.h"
#include "core/base/whereabouts.h"
#include "core/tensor/repeated_elements.h"

namespace partita::codegen {
namespace {

using schedule::PlanBuffer;
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

/// The memory of a tensor that the device has; null where the host's is to be used: what kernels write must be aligned.
std::shared_ptr<RemoteMemory> on_device(const Tensor& t, bool written) {
  std::shared_ptr<RemoteMemory> remote = t.numel() == 0 ? nullptr : t.storage->remote();
  const std::size_t offset = static_cast<std::size_t>(t.offset) * itemsize(t.dtype);
  return remote && written && (remote->address() + offset) % 16 != 0 ? nullptr : remote;
}

/// Does a layout of elements that share memory hold the values that it was given?
Status check_held(std::size_t input, const Tensor& given, const Tensor& held, bool written) {
  if (written) return input_error("run.input", repeated_elements);
  TRY(const Tensor a, given.contiguous());
  TRY(const Tensor b, held.contiguous());
  if (std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.numel()) * itemsize(a.dtype)) == 0) return {};
  return input_error("run.input",
                     fmt::format("input {} has elements that differ, but the graph was compiled for a layout in which "
                                 "they share memory: strides {}",
                                 input, list(held.strides)));
}

}  // namespace

Status PlanExecutable::bind_inputs(const std::vector<Value>& values, std::vector<Held>& held) {
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
      held[b] = {t->storage, nullptr, t->numel() == 0 ? 0 : static_cast<std::size_t>(t->offset) * itemsize(t->dtype)};
      if (device && !on_host[b]) held[b].remote = on_device(*t, input.written);
      base[b] = t->numel() == 0 || held[b].remote ? nullptr : t->data();
      continue;
    }
    TRY_DO(reuse_or_allocate(input.staging, room));
    Tensor copy{input.staging, t->dtype, input.sizes, input.strides, 0};
    copy.copy_from(*t);
    if (may_share_elements(input.sizes, input.strides)) TRY_DO(check_held(i, *t, copy, input.written));
    base[b] = input.staging->data();
    held[b] = {input.staging, nullptr, 0};
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
  const std::unique_ptr<KernelWatch> watch = code->watch();
  if (watch) {
    for (const int buffer : step.buffers) {
      const auto b = static_cast<std::size_t>(buffer);
      watch->takes(base[b], static_cast<std::size_t>(elements[b]) * itemsize(buffers[b].dtype), false);
    }
    for (const auto& [offset, bytes] : step.workspace) watch->takes(workspace->data() + offset, bytes, true);
    watch->takes(reinterpret_cast<std::byte*>(&fault), sizeof fault, false);
    step.arguments[step.fault + 1] = watch->argument();
  }
  for (const PhaseStep& phase : step.phases) {
    if (watch) watch->begin(phase.iterations);
    parallel_for(
        phase.parts, phase.iterations, 1, phase.alignment, [&](std::int64_t begin, std::int64_t end, int thread) {
          std::byte* own = scratch ? scratch->data() + scratch_bytes * static_cast<std::size_t>(thread) : nullptr;
          phase.run(step.arguments.data(), symbols.data(), own, begin, end);
        });
    if (const KernelWatch::Found* found = watch ? watch->found() : nullptr)
      return Diagnostic{Fault::Internal,
                        found->code,
                        fmt::format("kernel {}: {}", step.name, found->what),
                        {.node = fmt::format("{}", fmt::join(step.origins, ", "))}};
  }
  if (fault.met) return diagnostic(fault, step);
  return {};
}

/// Notes which step begins, for the process that watches this one: a step that crashes cannot tell.
void PlanExecutable::note(const Step& step) const {
  if (step.kernel >= 0) {
    const KernelStep& kernel = kernels[static_cast<std::size_t>(step.kernel)];
    return now_at("running kernel " + kernel.name, kernel.origins);
  }
  if (step.external < 0) return;
  const ExternReport& call = externs[static_cast<std::size_t>(step.external)];
  now_at(fmt::format("running {} ({})", call.op, call.library), {&call.node, 1});
}

Result<bool> PlanExecutable::begin_on_device(const std::vector<Held>& held) {
  std::vector<KernelDevice::Memory> memory;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const PlanBuffer& buffer = buffers[b];
    KernelDevice::Memory& m = memory.emplace_back();
    m.host = base[b];
    m.bytes = static_cast<std::size_t>(elements[b]) * itemsize(buffer.dtype);
    m.holds = buffer.kind == PlanBuffer::Kind::Constant || buffer.kind == PlanBuffer::Kind::Input;
    m.fixed = fixed[b];
    m.written = written[b];
    m.result = buffer.kind == PlanBuffer::Kind::Output && !on_host[b];
    m.remote = held[b].remote;
    m.offset = held[b].offset;
    if (buffer.kind == PlanBuffer::Kind::Temporary) m.in_arena = buffer.offset;
  }
  return device->begin({memory, arena_bytes, step_seconds != nullptr});
}

Status PlanExecutable::run_on_device(std::size_t kernel) {
  const KernelStep& step = kernels[kernel];
  std::vector<KernelDevice::Launch> launches;
  for (const PhaseStep& phase : step.phases)
    launches.push_back({phase.function, phase.iterations, phase.threads, phase.shared_bytes});
  return device->run(
      {kernel, step.name, step.origins, launches, step.buffers, step.workspace, step.workspace_bytes, symbols});
}

/// A call of a program whose kernels run on a device, there or on the host.
Status PlanExecutable::call_beside_device(std::size_t call) {
  const CallBuffers& own = call_buffers[call];
  const ExternReport& report = externs[call];
  if (own.on_device)
    return device->call(*calls[call], own.read, own.written, fmt::format("{} ({})", report.op, report.node));
  TRY_DO(device->give_to_host(own.read, false));
  TRY_DO(device->give_to_host(own.written, true));
  return calls[call]->run(base.data());
}

/// Gets the results, and reports the first fault. `timed`: the steps of `step_seconds` that the device has done.
Status PlanExecutable::end_on_device(std::vector<Held>& held, const std::vector<std::size_t>& timed) {
  std::vector<int> results;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].kind == PlanBuffer::Kind::Output && !on_host[b]) {
      TRY(held[b].storage, device->result(static_cast<int>(b)));
    } else if (written[b] && !held[b].remote && buffers[b].kind != PlanBuffer::Kind::Temporary) {
      results.push_back(static_cast<int>(b));
    }
  }
  TRY_DO(device->give_to_host(results, false));
  TRY(const auto faults, device->end(kernels.size()));
  if (step_seconds) {
    TRY(const std::vector<double> seconds, device->seconds());
    CHECK(seconds.size() == timed.size());
    for (std::size_t i = 0; i < timed.size(); ++i) (*step_seconds)[timed[i]] = seconds[i];
  }
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

const Tensor* PlanExecutable::given_memory(std::size_t buffer, std::span<const Tensor> into) const {
  const Tensor* found = nullptr;
  for (std::size_t i = 0; i < std::min(into.size(), outputs.size()); ++i) {
    const std::optional<ConcreteView>& view = outputs[i].view;
    if (!view || static_cast<std::size_t>(view->buffer) != buffer) continue;
    const Tensor& t = into[i];
    const std::size_t bytes = static_cast<std::size_t>(elements[buffer]) * itemsize(buffers[buffer].dtype);
    // Kernels may write whole vectors past the caches. Two results in one buffer are two pieces of the caller's memory.
    if (found || !t.storage || bytes == 0 || view->offset != 0 || t.dtype != view->dtype || t.sizes != view->sizes ||
        !same_strides(t, view->strides) || reinterpret_cast<std::uintptr_t>(t.data()) % Storage::alignment != 0 ||
        t.storage->bytes() - static_cast<std::size_t>(t.offset) * itemsize(t.dtype) < bytes)
      return nullptr;
    found = &t;
  }
  return found;
}

Result<std::vector<Value>> PlanExecutable::run(const std::vector<Value>& inputs, std::span<const Tensor> into) {
  std::lock_guard lock(mutex_);
  if (draws_anew) *generator = Generator();
  std::vector<Held> held(buffers.size());
  TRY_DO(bind_inputs(inputs, held));
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].kind != PlanBuffer::Kind::Output || (device && !on_host[b])) continue;
    if (const Tensor* given = given_memory(b, into)) {
      held[b] = {given->storage, nullptr, static_cast<std::size_t>(given->offset) * itemsize(given->dtype)};
      base[b] = given->data();
      continue;
    }
    TRY_DO(reuse_or_allocate(output_memory[b], static_cast<std::size_t>(elements[b]) * itemsize(buffers[b].dtype)));
    held[b].storage = output_memory[b];
    base[b] = output_memory[b]->data();
  }
  const bool noted = watched();
  bool done = false;
  if (device) TRY_DO(assign(done, begin_on_device(held)));
  std::vector<std::size_t> timed_on_device;
  if (pending) pending->clear();
  for (const Step& step : done ? std::span<const Step>() : std::span<const Step>(steps)) {
    if (noted) note(step);
    for (const int buffer : step.finishes) TRY_DO(pending->finish(buffer));
    const auto begun = step_seconds ? Clock::now() : Clock::time_point();
    bool by_device = false;
    if (step.kernel >= 0) {
      const auto k = static_cast<std::size_t>(step.kernel);
      by_device = device != nullptr;
      TRY_DO(device ? run_on_device(k) : run_kernel(kernels[k]));
    } else if (step.external >= 0) {
      const auto c = static_cast<std::size_t>(step.external);
      by_device = call_buffers[c].on_device;
      TRY_DO(device ? call_beside_device(c) : calls[c]->run(base.data()));
    }
    if (by_device && step_seconds) timed_on_device.push_back(step_seconds->size());
    if (step_seconds) step_seconds->push_back(std::chrono::duration<double>(Clock::now() - begun).count());
  }
  for (const int buffer : pending_outputs) TRY_DO(pending->finish(buffer));
  if (device) TRY_DO(end_on_device(held, timed_on_device));
  if (noted) now_at("handing over the results");
  write_back(inputs);
  std::vector<Value> results;
  results.reserve(outputs.size());
  for (const OutputView& out : outputs) {
    if (!out.view) {
      results.push_back(out.input < 0 ? out.value : inputs[static_cast<std::size_t>(out.input)]);
      continue;
    }
    auto b = static_cast<std::size_t>(out.view->buffer);
    Tensor t{held[b].storage, out.view->dtype, out.view->sizes, out.view->strides, out.view->offset};
    t.offset += static_cast<std::int64_t>(held[b].offset / itemsize(t.dtype));
    if (buffers[b].kind == PlanBuffer::Kind::Constant) {
      t.storage = constants[b].storage;
      t.offset += constants[b].offset;
    }
    results.push_back(std::move(t));
  }
  return results;
}

}  // namespace partita::codegen
