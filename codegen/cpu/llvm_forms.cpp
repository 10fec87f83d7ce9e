#include "codegen/cpu/llvm_forms.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "codegen/cpu/jit.h"
#include "codegen/program/kernel_forms.h"
#include "core/base/mapped.h"
#include "core/base/text.h"

namespace partita::codegen {
namespace {

using loops::LinkedText;
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
  const auto symbols = mapped(plan.symbols, [](const auto& symbol) { return symbol.first; });
  return compile_kernels({&kernel, 1}, symbols, {.target = plan.target, .keep_text = true, .mark_lines = true});
}

/// With the kernel's name in place of its symbol.
LinkedText named(LinkedText text, const loops::Kernel& kernel) {
  const std::string symbol = kernel_symbol(0);
  for (std::size_t at = 0; (at = text.text.find(symbol, at)) != std::string::npos; at += kernel.name.size())
    text.text.replace(at, symbol.size(), kernel.name);
  return text;
}

}  // namespace

std::vector<KernelForm> cpu_kernel_forms() {
  return {loops_form(),
          kernel_form("llvm", "LLVM IR",
                      [](const Plan& plan, const loops::Kernel& kernel) -> KernelText {
                        TRY(const ObjectCode code, compiled(plan, kernel));
                        return std::optional(named(linked_ir(code.ir), kernel));
                      }),
          kernel_form("asm", "assembly", [](const Plan& plan, const loops::Kernel& kernel) -> KernelText {
            TRY(const ObjectCode code, compiled(plan, kernel));
            return std::optional(named(linked_assembly(code.assembly), kernel));
          })};
}

}  // namespace partita::codegen
