// Prepares a program for some sizes: places buffers in memory, finds the kernels' functions, prepares calls (with the
// kernel behind a call as its work), and checks that views lie within buffers.
#include "codegen/program/executor.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/program/plan_executable.h"
#include "core/base/assign.h"
#include "core/base/check.h"
#include "core/base/threads.h"
#include "core/ops/record/evaluate.h"
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

/// A kernel of one phase as the work of a call.
class KernelWork final : public ResultWork {
 public:
  KernelWork(KernelStep step, const std::int64_t* symbols) : step_(std::move(step)), symbols_(symbols) {
    iterations = step_.phases[0].iterations;
    alignment = step_.phases[0].alignment;
  }
  void start(std::byte* const* buffers) override {
    for (std::size_t i = 0; i < step_.buffers.size(); ++i) step_.arguments[i] = buffers[step_.buffers[i]];
    step_.arguments[step_.buffers.size()] = &fault_.emplace();
  }
  void run(std::int64_t begin, std::int64_t end) override {
    step_.phases[0].run(step_.arguments.data(), symbols_, nullptr, begin, end);
  }
  Status finish() override {
    if (fault_->met) return diagnostic(*fault_, step_);
    return {};
  }

 private:
  KernelStep step_;
  const std::int64_t* symbols_;
  std::optional<KernelFault> fault_;
};

Diagnostic dynamic(const std::string& what) {
  return unsupported("codegen.dynamic",
                     what + " has a size that changes from run to run; make the plan for given sizes");
}

Diagnostic does_not_fit(const std::string& what) {
  return input_error("codegen.program", what + "; the stored program is damaged");
}

class Loader {
 public:
  /// `plan`: the program's, with numbers for sizes.
  Loader(const Program& program, const Plan& plan, const std::map<std::string, std::int64_t>& sizes,
         const std::map<std::string, Tensor>& constants, const ExecutorOptions& options)
      : program_(program),
        plan_(plan),
        sizes_(sizes),
        constants_(constants),
        options_(options),
        out_(std::make_unique<PlanExecutable>()) {}

  Result<std::unique_ptr<Executable>> load(std::shared_ptr<LoadedCode> code) {
    const auto start = Clock::now();
    out_->code = std::move(code);
    out_->device = options_.device;
    out_->written = program_.written;
    out_->threads = std::max(plan_.target.threads, 1);
    for (const std::string& name : program_.symbols) {
      const auto value = sizes_.find(name);
      if (value == sizes_.end()) return does_not_fit("the size " + name + " has no value");
      out_->symbols.push_back(value->second);
    }
    TRY_DO(check_threads(out_->threads));
    TRY_DO(memory());
    TRY_DO(steps());
    if (out_->pending) find_readers();
    TRY_DO(inputs_and_outputs());
    if (out_->device) for_device();
    out_->times.prepare_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    return std::unique_ptr<Executable>(std::move(out_));
  }

 private:
  /// The value of an extent in a kernel.
  std::optional<std::int64_t> value(SymExpr e) const {
    return e.is_int() ? e.as_int() : schedule::instance_value(e, sizes_);
  }
  Status memory();
  /// `work`: the next step, if it is the work on the call's result. Returns whether the call does it.
  Result<bool> add_call(const ExternCall& call, const ProgramCall& known, const KernelCall* work);
  /// The kernel's work on its first buffer as ClampedSum, with a buffer of the plan.
  std::optional<ClampedSum> simple_work(const KernelCall& call) const;
  Status add_kernel(const KernelCall& call);
  /// `scratch`: gets the bytes of it that a thread needs.
  Result<KernelStep> kernel_step(const KernelCall& call, std::size_t& scratch) const;
  Status steps();
  Status check(const PlanView& view) const;
  void find_readers();
  Status inputs_and_outputs();
  /// Finds what the host uses beside the device, and why runs cannot be recorded.
  void for_device();
  bool fixed(int buffer) const {
    const PlanBuffer& b = plan_.buffers[static_cast<std::size_t>(buffer)];
    return !program_.written[static_cast<std::size_t>(buffer)] &&
           (b.kind == PlanBuffer::Kind::Constant ||
            (b.kind == PlanBuffer::Kind::Input && options_.fixed_inputs.contains(b.index)));
  }

  const Program& program_;
  const Plan& plan_;
  const std::map<std::string, std::int64_t>& sizes_;
  const std::map<std::string, Tensor>& constants_;
  const ExecutorOptions& options_;
  std::unique_ptr<PlanExecutable> out_;
  std::vector<bool> starts_;         ///< by call: it starts a collective
  std::size_t workspace_bytes_ = 0;  ///< of the kernel that needs most
};

Status Loader::memory() {
  out_->buffers = plan_.buffers;
  out_->base.resize(plan_.buffers.size());
  out_->constants.resize(plan_.buffers.size());
  out_->output_memory.resize(plan_.buffers.size());
  out_->arena_bytes = plan_.arena_bytes;
  if (plan_.arena_bytes > 0) TRY_DO(assign(out_->arena, Storage::allocate(plan_.arena_bytes)));
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    const PlanBuffer& buffer = plan_.buffers[b];
    if (!buffer.elements.is_int()) return dynamic("buffer " + std::to_string(b));
    const std::int64_t n = buffer.elements.as_int();
    std::size_t bytes;
    if (n < 0 || __builtin_mul_overflow(static_cast<std::size_t>(n), itemsize(buffer.dtype), &bytes))
      return does_not_fit("a buffer has an impossible size");
    out_->elements.push_back(n);
    if (buffer.kind == PlanBuffer::Kind::Temporary) {
      if (bytes > plan_.arena_bytes || buffer.offset > plan_.arena_bytes - bytes)
        return does_not_fit("a temporary lies outside of the arena");
      out_->base[b] = out_->arena ? out_->arena->data() + buffer.offset : nullptr;
    } else if (buffer.kind == PlanBuffer::Kind::Constant) {
      const auto it = constants_.find(buffer.attribute);
      if (it == constants_.end()) return does_not_fit("there is no constant " + buffer.attribute);
      if (it->second.storage->bytes() < static_cast<std::size_t>(it->second.offset) * itemsize(buffer.dtype) + bytes)
        return does_not_fit("constant " + buffer.attribute + " is smaller than its buffer");
      out_->constants[b] = it->second;
      out_->base[b] = bytes == 0 ? nullptr : it->second.data();
    }
  }
  return {};
}

/// Does the view lie within its buffer?
Status Loader::check(const PlanView& view) const {
  if (view.buffer < 0) return {};
  const auto concrete = concrete_view(view);
  if (!concrete) return {};  // whoever needs numbers says so
  const auto count = reach(concrete->sizes, concrete->strides);
  const std::int64_t room = out_->elements[static_cast<std::size_t>(view.buffer)];
  if (!count || concrete->offset < 0 || (*count > 0 && (*count > room || concrete->offset > room - *count)))
    return does_not_fit("a view lies outside of its buffer");
  return {};
}

Result<bool> Loader::add_call(const ExternCall& call, const ProgramCall& known, const KernelCall* work) {
  for (const auto& argument : call.args)
    for (const PlanView& v : schedule::views_in(argument)) TRY_DO(check(v));
  for (const PlanView& v : call.results) TRY_DO(check(v));
  ExternContext context{call,
                        known.routine,
                        out_->threads,
                        [&](int b) { return fixed(b); },
                        out_->generator.get(),
                        [&](int b) { return std::optional(out_->elements[static_cast<std::size_t>(b)]); },
                        {},
                        options_.packed,
                        options_.communicator.get(),
                        out_->pending.get()};
  if (call.graph && options_.compile_sub_graph)
    context.compile_sub_graph = [&](const Graph& graph) { return options_.compile_sub_graph(graph, out_->generator); };
  if (work && !options_.device) {
    std::size_t scratch = 0;
    TRY(KernelStep step, kernel_step(*work, scratch));
    if (step.phases.size() == 1 && scratch == 0) {
      const std::optional<ClampedSum> simple = simple_work(*work);
      context.work = std::make_shared<KernelWork>(std::move(step), out_->symbols.data());
      context.work->simple = simple;
    }
  }
  std::string why_not;
  Prepared prepared;
  if (options_.device) prepared = options_.device->prepare(context, why_not);
  if (!prepared.step) TRY_DO(assign(prepared, options_.prepare(context, why_not)));
  out_->draws_anew |= !options_.generator && known.draws;
  out_->externs.push_back(
      {call.origin, call.op->name, prepared.library, why_not, work ? std::move(prepared.work) : ""});
  out_->steps.push_back({-1, static_cast<int>(out_->calls.size())});
  out_->calls.push_back(std::move(prepared.step));
  starts_.push_back(!call.graph && options_.starts_collective && options_.starts_collective(call.op));
  auto& [read, wrote, on_device] = out_->call_buffers.emplace_back();
  on_device = prepared.on_device;
  for (const auto& argument : call.args)
    for (const PlanView& v : schedule::views_in(argument)) read.push_back(v.buffer);
  for (const PlanView& v : call.results) wrote.push_back(v.buffer);
  return prepared.does_work;
}

Result<KernelStep> Loader::kernel_step(const KernelCall& call, std::size_t& scratch) const {
  const ProgramKernel& kernel = program_.kernels[static_cast<std::size_t>(call.kernel)];
  KernelStep step;
  step.name = kernel.name;
  step.buffers = call.buffers;
  std::size_t& room = step.workspace_bytes;
  for (std::size_t i = 0; i < kernel.entry.workspace.size(); ++i) {
    const auto n = value(kernel.entry.workspace[i]);
    std::size_t bytes;
    if (!n) return dynamic("kernel " + kernel.name);
    if (*n < 0 || __builtin_mul_overflow(static_cast<std::size_t>(*n), kernel.entry.workspace_item[i], &bytes) ||
        bytes > PTRDIFF_MAX - room - 256)
      return does_not_fit("a workspace has an impossible size");
    step.workspace.emplace_back(room, bytes);
    room = (room + bytes + 255) / 128 * 128;  // with a gap, so that an access beyond its end hits no other
  }
  step.fault = call.buffers.size() + step.workspace.size();
  step.arguments.resize(step.fault + 2);
  step.bounds = kernel.bounds;
  for (loops::Bound& b : step.bounds) b.size = value(b.size).value_or(0);
  step.origins = kernel.origins;
  double work = 0;
  for (const ProgramKernel::Work& w : kernel.work) {
    double share = w.operations;
    for (SymExpr e : w.extents) share *= static_cast<double>(value(e).value_or(1'000'000));
    work += share;
  }
  for (const Phase& phase : kernel.entry.phases) {
    const auto iterations = value(phase.iterations);
    if (!iterations) return dynamic("kernel " + kernel.name);
    if (!out_->code) return does_not_fit("kernel " + kernel.name + " has no code");
    TRY(void* function, out_->code->find(phase.symbol));
    PhaseStep p{function, *iterations, phase.alignment, 1, phase.threads, phase.shared_bytes};
    // A part must do more work than waking a thread costs, which is a few microseconds.
    constexpr double part_work = 40'000;
    if (phase.parallel)
      p.parts = static_cast<int>(std::clamp(work / part_work, 1.0, static_cast<double>(out_->threads)));
    step.phases.push_back(p);
  }
  bool constant = true;
  scratch = kernel.entry.scratch_bytes([&](const SymExpr& e) {
    const auto n = value(e);
    constant = constant && n && *n >= 0;
    return constant ? *n : 0;
  });
  if (!constant) return dynamic("kernel " + kernel.name);
  return step;
}

std::optional<ClampedSum> Loader::simple_work(const KernelCall& call) const {
  std::optional<ClampedSum> simple = program_.kernels[static_cast<std::size_t>(call.kernel)].simple;
  if (!simple || simple->added < 0) return simple;
  const auto elements = [&](int i) {
    return out_->elements[static_cast<std::size_t>(call.buffers[static_cast<std::size_t>(i)])];
  };
  if (static_cast<std::size_t>(simple->added) >= call.buffers.size() || elements(simple->added) < elements(0))
    return std::nullopt;
  simple->added = call.buffers[static_cast<std::size_t>(simple->added)];
  return simple;
}

Status Loader::add_kernel(const KernelCall& call) {
  std::size_t scratch = 0;
  TRY(KernelStep step, kernel_step(call, scratch));
  out_->scratch_bytes = std::max(out_->scratch_bytes, scratch);
  workspace_bytes_ = std::max(workspace_bytes_, step.workspace_bytes);
  out_->steps.push_back({static_cast<int>(out_->kernels.size()), -1});
  out_->kernels.push_back(std::move(step));
  return {};
}

Status Loader::steps() {
  out_->generator = options_.generator ? options_.generator : std::make_shared<Generator>();
  if (options_.communicator && !options_.device)
    out_->pending = std::make_unique<PendingResults>(options_.communicator);
  std::size_t calls = 0;
  bool done = false;  // the call before does the work of this step
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    if (auto* call = std::get_if<KernelCall>(&plan_.steps[i])) {
      if (done)
        out_->steps.push_back({});
      else
        TRY_DO(add_kernel(*call));
      done = false;
      continue;
    }
    const ProgramCall& known = program_.calls[calls++];
    const KernelCall* work = known.has_work ? &std::get<KernelCall>(plan_.steps[i + 1]) : nullptr;
    TRY(done, add_call(std::get<ExternCall>(plan_.steps[i]), known, work));
  }
  if (workspace_bytes_ > 0 && !out_->device) TRY_DO(assign(out_->workspace, Storage::allocate(workspace_bytes_)));
  if (out_->scratch_bytes > 0)
    TRY_DO(assign(out_->scratch, Storage::allocate(out_->scratch_bytes * static_cast<std::size_t>(out_->threads))));
  return {};
}

/// Notes which steps read what a collective before them fills.
void Loader::find_readers() {
  std::set<int> filled;
  for (PlanExecutable::Step& step : out_->steps) {
    const auto meets = [&](int buffer) {
      if (filled.contains(buffer)) step.finishes.push_back(buffer);
    };
    if (step.kernel >= 0) std::ranges::for_each(out_->kernels[static_cast<std::size_t>(step.kernel)].buffers, meets);
    if (step.external < 0) continue;
    const auto call = static_cast<std::size_t>(step.external);
    const PlanExecutable::CallBuffers& own = out_->call_buffers[call];
    std::ranges::for_each(own.read, meets);
    std::ranges::for_each(own.written, meets);
    if (starts_[call]) filled.insert(own.written.begin(), own.written.end());
  }
  for (const int b : filled)
    if (b >= 0 && plan_.buffers[static_cast<std::size_t>(b)].kind != PlanBuffer::Kind::Temporary)
      out_->pending_outputs.push_back(b);
}

Status Loader::inputs_and_outputs() {
  for (std::size_t i = 0; i < plan_.inputs.size(); ++i) {
    InputView input;
    input.meta = plan_.inputs[i];
    auto sizes = concrete(input.meta.sizes), strides = concrete(input.meta.strides);
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b)
      if (plan_.buffers[b].kind == PlanBuffer::Kind::Input && plan_.buffers[b].index == static_cast<int>(i))
        input.buffer = static_cast<int>(b);
    input.written = input.buffer >= 0 && program_.written[static_cast<std::size_t>(input.buffer)];
    if (input.buffer >= 0 && (!sizes || !strides)) return dynamic("input " + std::to_string(i));
    if (sizes && strides) {
      input.sizes = std::move(*sizes);
      input.strides = std::move(*strides);
    }
    out_->inputs_.push_back(std::move(input));
  }
  for (const auto& output : plan_.outputs) {
    OutputView view;
    if (auto* v = std::get_if<PlanView>(&output)) {
      TRY_DO(check(*v));
      view.view = concrete_view(*v);
      if (!view.view) return dynamic("an output");
      CHECK(plan_.buffers[static_cast<std::size_t>(v->buffer)].kind != PlanBuffer::Kind::Temporary,
            "an output in the arena");
    } else if (auto* literal = std::get_if<Arg>(&output)) {
      view.value = to_value(*literal);
    } else if (auto* given = std::get_if<schedule::HandedOn>(&output)) {
      view.input = given->input;
    } else {
      const SymExpr e = std::get<SymExpr>(output);
      if (!e.is_int()) return dynamic("an output");
      view.value = e.as_int();
    }
    out_->outputs.push_back(std::move(view));
  }
  return {};
}

void Loader::for_device() {
  const std::size_t n = plan_.buffers.size();
  out_->on_host.resize(n);
  for (std::size_t b = 0; b < n; ++b) out_->fixed.push_back(fixed(static_cast<int>(b)));
  std::string why;
  int written = 0;
  for (const InputView& input : out_->inputs_) written += input.written;
  if (written > 0) why = fmt::format("mutated inputs ({} instances)", written);
  const auto on_cpu = [](const TensorMeta& t) { return t.device.type == DeviceType::Cpu; };
  // The inputs of a graph that was made for the CPU are copied to the device, all of them.
  const bool for_cpu = std::ranges::all_of(plan_.inputs, on_cpu);
  for (std::size_t i = 0; i < plan_.inputs.size() && !for_cpu; ++i)
    if (out_->inputs_[i].buffer >= 0 && on_cpu(plan_.inputs[i])) why = fmt::format("cpu device (input {})", i);
  for (std::size_t c = 0; c < out_->calls.size(); ++c) {
    const auto& call = out_->call_buffers[c];
    if (call.on_device) continue;
    why = fmt::format("a call on the CPU ({}, {})", out_->externs[c].node, out_->externs[c].op);
    for (const std::vector<int>* list : {&call.read, &call.written})
      for (const int b : *list)
        if (b >= 0) out_->on_host[static_cast<std::size_t>(b)] = true;
  }
  if (out_->steps.empty()) why = "nothing to launch";
  if (!why.empty()) out_->device->never_record(why);
}

}  // namespace

Result<std::unique_ptr<Executable>> load_program(std::shared_ptr<const Program> program,
                                                 const std::map<std::string, std::int64_t>& sizes,
                                                 std::shared_ptr<LoadedCode> code,
                                                 const std::map<std::string, Tensor>& constants,
                                                 const ExecutorOptions& options) {
  if (sizes.empty()) return Loader(*program, program->plan, sizes, constants, options).load(std::move(code));
  TRY(const Plan plan, schedule::at_sizes(program->plan, sizes));
  return Loader(*program, plan, sizes, constants, options).load(std::move(code));
}

}  // namespace partita::codegen
