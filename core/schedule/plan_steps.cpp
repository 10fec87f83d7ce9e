// Parts of a plan, to find the step that is wrong.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/check.h"
#include "core/schedule/execute_plan.h"

namespace partita::schedule {

std::vector<std::string> step_origins(const Plan& plan, const std::variant<KernelCall, ExternCall>& step) {
  if (const auto* call = std::get_if<KernelCall>(&step))
    return plan.kernels[static_cast<std::size_t>(call->kernel)].origins;
  const auto& call = std::get<ExternCall>(step);
  std::vector<std::string> out{call.origin};
  out.insert(out.end(), call.epilogue_origins.begin(), call.epilogue_origins.end());
  return out;
}

Status widen_narrow(int narrow, DType dtype, std::vector<Value>& args) {
  Value& value = args[static_cast<std::size_t>(narrow)];
  TRY(value, value.get<Tensor>()->to(dtype));
  return {};
}

Result<Tensor> with_zeros(const Tensor& tensor, std::span<const std::int64_t> around) {
  Sizes sizes = tensor.sizes;
  for (std::size_t i = 0; i < around.size(); ++i) sizes[sizes.size() - 1 - i / 2] += around[i];
  TRY(Tensor out, Tensor::empty(tensor.dtype, sizes));
  std::memset(out.data(), 0, static_cast<std::size_t>(out.numel()) * itemsize(out.dtype));
  Tensor middle = out.view_as(tensor.sizes, out.strides, 0);
  for (std::size_t i = 0; i < around.size(); i += 2) middle.offset += around[i] * out.strides[sizes.size() - 1 - i / 2];
  middle.copy_from(tensor);
  return out;
}

std::vector<int> used_by(const std::variant<KernelCall, ExternCall>& step) {
  if (const auto* call = std::get_if<KernelCall>(&step)) return call->buffers;
  const auto& call = std::get<ExternCall>(step);
  std::vector<int> out;
  const auto add = [&](const PlanView& v) {
    if (v.buffer >= 0) out.push_back(v.buffer);
  };
  for (const auto& argument : call.args) std::ranges::for_each(views_in(argument), add);
  for (const PlanView& v : call.epilogue_inputs) add(v);
  for (const PlanView& v : call.results) add(v);
  return out;
}

std::vector<int> written_by(const Plan& plan, const std::variant<KernelCall, ExternCall>& step) {
  std::vector<int> out;
  const auto add = [&](int buffer) {
    if (buffer >= 0 && std::ranges::find(out, buffer) == out.end()) out.push_back(buffer);
  };
  if (const auto* call = std::get_if<ExternCall>(&step)) {
    for (const PlanView& v : call->results) add(v.buffer);
    return out;
  }
  const auto& call = std::get<KernelCall>(step);
  std::size_t next = 0;
  for (const loops::Buffer& b : plan.kernels[static_cast<std::size_t>(call.kernel)].buffers) {
    if (b.role == loops::Buffer::Role::Scratch) continue;
    if (b.role == loops::Buffer::Role::Output) add(call.buffers[next]);
    ++next;
  }
  return out;
}

Plan first_steps(const Plan& plan, std::size_t count) {
  CHECK(count > 0 && count <= plan.steps.size());
  Plan out = plan;
  out.steps.resize(count);
  out.outputs.clear();
  out.promised.clear();
  for (const int buffer : written_by(plan, out.steps.back())) {
    PlanBuffer& b = out.buffers[static_cast<std::size_t>(buffer)];
    if (b.kind == PlanBuffer::Kind::Temporary) b.kind = PlanBuffer::Kind::Output;
    out.outputs.emplace_back(PlanView{buffer, b.dtype, {b.elements}, {1}, 0});
  }
  return out;
}

std::string step_name(const Plan& plan, std::size_t step) {
  if (const auto* call = std::get_if<ExternCall>(&plan.steps[step]))
    return fmt::format("{} ({})", call->op->name, call->origin);
  const int kernel = std::get<KernelCall>(plan.steps[step]).kernel;
  return fmt::format("kernel {} ({})", kernel, fmt::join(plan.kernels[static_cast<std::size_t>(kernel)].origins, ", "));
}

}  // namespace partita::schedule
