// Texts of kernels whose lines are linked to graph nodes, and the times of steps.
#include "codegen/cpu/kernel_forms.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <unordered_map>

#include "codegen/cpu/jit.h"
#include "codegen/program/epilogue_kernel.h"
#include "codegen/program/executable.h"
#include "core/base/check.h"
#include "core/base/text.h"
#include "core/compare/per_node.h"

namespace partita::codegen {
namespace {

using loops::LinkedText;
using schedule::ExternCall;
using schedule::KernelCall;
using schedule::Plan;

/// The number at the beginning of a text; -1: there is none.
int number_at(std::string_view text) {
  int value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// The nodes of a marked line.
std::vector<int> source_of(int line) {
  return line > 0 ? std::vector<int>{line - 1} : std::vector<int>();
}

/// LLVM's text with its locations as links. What describes the locations is left out.
LinkedText linked_ir(std::string_view ir) {
  constexpr std::string_view location = "DILocation(line: ", mark = "!dbg !";
  std::unordered_map<int, int> line_of;
  for (std::string_view line : lines_of(ir)) {
    const std::size_t at = line.find(location);
    if (line.starts_with("!") && at != std::string_view::npos)
      line_of[number_at(line.substr(1))] = number_at(line.substr(at + location.size()));
  }
  LinkedText out;
  bool empty = true;
  for (std::string_view line : lines_of(ir)) {
    if (line.starts_with("!") || line.starts_with("; ModuleID") || line.starts_with("source_filename")) continue;
    if (line.empty() && empty) continue;
    empty = line.empty();
    const std::size_t at = line.rfind(mark);
    if (at == std::string_view::npos) {
      out.add(line);
      continue;
    }
    const std::string_view rest = line.substr(at + mark.size());
    const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
    std::string_view before = line.substr(0, at);
    const auto known = line_of.find(number_at(rest));
    while (before.ends_with(' ') || before.ends_with(',')) before.remove_suffix(1);
    out.add(std::string(before) + std::string(rest.substr(end)),
            known == line_of.end() ? std::vector<int>() : source_of(known->second));
  }
  return out;
}

/// The assembler's text with its .loc lines as links. Directives and tables of constants are left out.
LinkedText linked_assembly(std::string_view assembly) {
  LinkedText out;
  int current = 0;
  bool code = true;
  for (std::string_view line : lines_of(assembly)) {
    const std::string_view word = line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
    const bool label = !line.empty() && word.size() == line.size();
    if (word.starts_with(".section") || word.starts_with(".text"))
      code = word.starts_with(".text") || word.find("text") != std::string_view::npos;
    if (!code || word.empty() || word[0] == '#') continue;
    if (word.starts_with(".loc")) {
      const std::size_t space = word.find(' ', word.find_first_of("0123456789"));
      current = space == std::string_view::npos ? 0 : number_at(word.substr(space + 1));
      continue;
    }
    if (!label && word[0] == '.') continue;
    if (label && (word.starts_with(".Ltmp") || word.starts_with(".Lfunc_"))) continue;
    if (label && !word.starts_with(".L")) current = 0;  // a function begins
    out.add(line, label ? std::vector<int>() : source_of(current));
  }
  return out;
}

Result<ObjectCode> compiled(const Plan& plan, const loops::Kernel& kernel) {
  std::vector<std::string> symbols;
  for (const auto& [name, value] : plan.symbols) symbols.push_back(name);
  return compile_kernels({&kernel, 1}, symbols, {.target = plan.target, .keep_text = true, .mark_lines = true});
}

/// With the kernel's name in place of its symbol.
LinkedText named(LinkedText text, const loops::Kernel& kernel) {
  const std::string symbol = kernel_symbol(0);
  for (std::size_t at = 0; (at = text.text.find(symbol, at)) != std::string::npos; at += kernel.name.size())
    text.text.replace(at, symbol.size(), kernel.name);
  return text;
}

template <class F>
KernelForm form(std::string name, std::string title, F text) {
  return {std::move(name), std::move(title),
          [text](const Plan& plan, std::size_t step) -> Result<std::optional<LinkedText>> {
            TRY(const std::optional<loops::Kernel> kernel, kernel_of_step(plan, step));
            if (!kernel) return std::optional<LinkedText>();
            return text(plan, *kernel);
          }};
}

}  // namespace

Result<std::optional<loops::Kernel>> kernel_of_step(const Plan& plan, std::size_t step) {
  if (const auto* call = std::get_if<KernelCall>(&plan.steps[step]))
    return std::optional(plan.kernels[static_cast<std::size_t>(call->kernel)]);
  const auto& call = std::get<ExternCall>(plan.steps[step]);
  if (!call.epilogue) return std::optional<loops::Kernel>();
  std::vector<int> buffers;
  TRY(loops::Kernel kernel, epilogue_kernel(plan, call, buffers));
  return std::optional(std::move(kernel));
}

std::vector<KernelForm> cpu_kernel_forms() {
  using Text = Result<std::optional<LinkedText>>;
  return {form("loops", "loop IR",
               [](const Plan&, const loops::Kernel& kernel) -> Text { return std::optional(print_linked(kernel)); }),
          form("llvm", "LLVM IR",
               [](const Plan& plan, const loops::Kernel& kernel) -> Text {
                 TRY(const ObjectCode code, compiled(plan, kernel));
                 return std::optional(named(linked_ir(code.ir), kernel));
               }),
          form("asm", "assembly", [](const Plan& plan, const loops::Kernel& kernel) -> Text {
            TRY(const ObjectCode code, compiled(plan, kernel));
            return std::optional(named(linked_assembly(code.assembly), kernel));
          })};
}

Result<StagedCompiler::Measured> measure_cpu(const StagedCompiler::Planned& planned, const CpuOptions& options,
                                             const std::vector<Value>& inputs, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t most_runs = 101, least_runs = 3;
  const auto& [graph, plan] = planned;
  TRY(const auto executable, compile_cpu(plan, graph->attributes, options));
  // The work after a call is a step of its own in the program.
  std::vector<std::size_t> step_of;
  StagedCompiler::Measured out;
  out.steps.resize(plan.steps.size());
  for (std::size_t i = 0, next = 0; i < plan.steps.size(); ++i) {
    step_of.push_back(i);
    const auto* call = std::get_if<ExternCall>(&plan.steps[i]);
    if (!call) continue;
    // A call that CUDA kernels do is a kernel of the program.
    const bool called = next < executable->externs.size() && executable->externs[next].node == call->origin;
    out.steps[i].library = called ? executable->externs[next].library : "CUDA kernel";
    if (called) out.steps[i].why_not = executable->externs[next++].why_not;
    if (call->epilogue) step_of.push_back(i);
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
    CHECK(taken.size() == step_of.size());
    std::vector<double> sums(plan.steps.size(), 0);
    for (std::size_t i = 0; i < taken.size(); ++i) sums[step_of[i]] += taken[i];
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
