#include "core/schedule/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/ir/print.h"

namespace partita::schedule {
namespace {

std::string text(const SymList& list) {
  std::vector<std::string> items;
  for (SymExpr e : list) items.push_back(e.str());
  return fmt::format("[{}]", fmt::join(items, ", "));
}

std::string text(const PlanView& v) {
  if (v.buffer < 0) return "None";
  return fmt::format("%{} {}{}{}{}", v.buffer, short_name(v.dtype), text(v.sizes), text(v.strides),
                     v.offset.is(0) ? "" : "+" + v.offset.str());
}

std::string text(const ExternCall::Argument& a) {
  if (auto* view = std::get_if<PlanView>(&a)) return text(*view);
  if (auto* list = std::get_if<std::vector<PlanView>>(&a)) {
    std::vector<std::string> items;
    for (const PlanView& v : *list) items.push_back(text(v));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
  return print(std::get<Arg>(a));
}

/// " on cuda:0"; nothing for the CPU.
std::string place(Device device) {
  return device.type == DeviceType::Cpu ? "" : " on " + device.str();
}

std::string text(const PlanBuffer& b) {
  std::string size = fmt::format("{}[{}]{}", short_name(b.dtype), b.elements.str(), place(b.device));
  switch (b.kind) {
    case PlanBuffer::Kind::Input:
      return fmt::format("input {} {}", b.index, size);
    case PlanBuffer::Kind::Constant:
      return fmt::format("constant {} {}", b.attribute, size);
    case PlanBuffer::Kind::Temporary:
      return fmt::format("arena+{} {}", b.offset, size);
    case PlanBuffer::Kind::Output:
      return fmt::format("output {}", size);
  }
  return size;
}

}  // namespace

std::string_view reason(Apart why) {
  static constexpr std::string_view reasons[] = {
#define V(name, text) text,
      PARTITA_APART(V)
#undef V
  };
  return reasons[static_cast<std::size_t>(why)];
}

std::string print(const Plan& plan) {
  std::string out = fmt::format("arena {} bytes\n", plan.arena_bytes);
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) out += fmt::format("%{} = {}\n", i, text(plan.buffers[i]));
  for (const auto& step : plan.steps) {
    if (auto* call = std::get_if<KernelCall>(&step)) {
      std::vector<std::string> buffers;
      for (int b : call->buffers) buffers.push_back(fmt::format("%{}", b));
      out +=
          fmt::format("{}({})\n", plan.kernels[static_cast<std::size_t>(call->kernel)].name, fmt::join(buffers, ", "));
      continue;
    }
    const auto& call = std::get<ExternCall>(step);
    std::vector<std::string> args, results, inputs;
    for (const auto& a : call.args) args.push_back(text(a));
    for (const PlanView& v : call.results) results.push_back(text(v));
    for (const PlanView& v : call.epilogue_inputs) inputs.push_back(text(v));
    out += fmt::format("{} = {}({}){}  # {}\n", fmt::join(results, ", "), call.op->name, fmt::join(args, ", "),
                       place(call.device), call.origin);
    if (!call.around.empty()) out += fmt::format("  with zeros around: {}\n", fmt::join(call.around, ", "));
    if (call.epilogue)
      out += fmt::format("  then {} operations of ({})\n", call.epilogue->nodes().size(), fmt::join(inputs, ", "));
  }
  std::vector<std::string> outputs;
  for (const auto& o : plan.outputs) {
    if (auto* view = std::get_if<PlanView>(&o))
      outputs.push_back(text(*view));
    else if (auto* e = std::get_if<SymExpr>(&o))
      outputs.push_back(e->str());
    else if (auto* given = std::get_if<HandedOn>(&o))
      outputs.push_back(fmt::format("input {}", given->input));
    else
      outputs.push_back(print(std::get<Arg>(o)));
  }
  out += fmt::format("return ({})\n", fmt::join(outputs, ", "));
  for (const loops::Kernel& k : plan.kernels) out += "\n" + loops::print(k);
  return out;
}

}  // namespace partita::schedule
