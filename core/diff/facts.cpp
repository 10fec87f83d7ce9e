// Reads facts, as names and values, from the records of a compilation: graph breaks, recompilations, options, guards,
// kernels, caches, times. Addresses are taken out of guards, since each process has others.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/diff/compared_runs.h"
#include "core/load/dynamo_reasons.h"
#include "core/load/output_code.h"
#include "core/load/records.h"

namespace partita {
namespace {

using Json = nlohmann::json;

/// Calls f with each line that is not empty.
void each_line(std::string_view text, const auto& f) {
  for (std::string_view line : lines_of(text))
    if (line = trimmed(line); !line.empty()) f(line);
}

/// Calls f with the text of each record of that name.
void each_text(const Compilation& c, std::string_view name, const auto& f) {
  for (const Artefact* a : c.artefacts)
    if (record_name(*a) == name)
      if (const auto text = a->text()) f(*text);
}

/// Calls f with what each line of the records of that name holds.
void each_record(const Compilation& c, std::string_view name, const auto& f) {
  for (const Artefact* a : c.artefacts)
    if (record_name(*a) == name)
      for (const Json& record : records(*a))
        if (record.is_object()) f(record);
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void add_options(Facts& out, const std::string& prefix, const Json& options) {
  if (!options.is_object()) return;
  for (const auto& [name, value] : options.items()) out.emplace_back(prefix + name, text_of(value));
}

/// Addresses differ in each process. They are in reprs (<f at 0x7f3a12b4c5d0>), in names that dynamo makes
/// (G['_backward_hook_139694803641216_c0']), and in ___check_type_id(L['x'], 139694803641216), which guards the type
/// that follows.
std::string without_addresses(std::string_view guard) {
  constexpr std::string_view decimal = "0123456789", hexadecimal = "0123456789abcdef";
  constexpr std::size_t least_decimal = 9, least_hexadecimal = 6;
  std::string out;
  while (!guard.empty()) {
    const bool hex = guard.starts_with("0x");
    const std::size_t prefix = hex ? 2 : 1;
    const std::string_view rest = guard.substr(prefix);
    const std::size_t digits = std::min(rest.find_first_not_of(hex ? hexadecimal : decimal), rest.size());
    const bool address = hex ? digits >= least_hexadecimal : guard[0] == '_' && digits >= least_decimal;
    out += guard.substr(0, prefix);
    if (address) out += "...";
    guard.remove_prefix(address ? prefix + digits : prefix);
  }
  if (!out.starts_with("___check_")) return out;
  const std::size_t comma = out.find(", "), close = out.find(')', comma);
  if (comma == std::string::npos || close == std::string::npos) return out;
  if (out.find_first_not_of(decimal, comma + 2) == close) out.erase(comma, close - comma);
  return out;
}

}  // namespace

Facts break_facts(const Compilation& c) {
  Facts out;
  each_text(c, "dynamo_graph_break_reason", [&](const std::string& text) {
    const GraphBreak found = read_graph_break(text);
    out.emplace_back(found.at.file.empty() ? "graph break" : fmt::format("{}:{}", found.at.file, found.at.line),
                     found.reason);
  });
  return out;
}

Facts recompilation_facts(const Compilation& c) {
  Facts out;
  each_text(c, "recompile_reasons", [&](const std::string& text) {
    for (const FailedGuard& failed : read_recompile_reasons(text))
      out.emplace_back("guard that failed",
                       (failed.earlier.empty() ? std::string() : failed.earlier + ": ") + failed.guard);
  });
  return out;
}

Facts option_facts(const Compilation& c) {
  Facts out;
  each_text(c, "torch_version",
            [&](const std::string& text) { add_options(out, "torch.", Json::parse(text, nullptr, false)); });
  each_text(c, "partita.config", [&](const std::string& text) {  // as config_text() writes it
    each_line(text, [&](std::string_view line) {
      constexpr std::string_view equals = " = ";
      if (const std::size_t at = line.find(equals); at != std::string_view::npos)
        out.emplace_back("partita." + std::string(line.substr(0, at)), line.substr(at + equals.size()));
    });
  });
  each_record(c, "compilation_metrics", [&](const Json& record) {
    constexpr std::string_view ending = "_config";
    for (const auto& [name, value] : record.items())
      if (name.ends_with(ending) && value.is_string())
        add_options(out, name.substr(0, name.size() - ending.size()) + ".",
                    Json::parse(value.get<std::string>(), nullptr, false));
  });
  // AOTAutograd writes its options, some of which it sets itself meanwhile, only where its cache has nothing.
  constexpr std::string_view functorch = "functorch.";
  if (std::ranges::none_of(out, [&](const auto& fact) { return fact.first.starts_with(functorch); }))
    each_text(c, "torch._functorch.config", [&](const std::string& text) {
      add_options(out, std::string(functorch), Json::parse(text, nullptr, false));
    });
  return out;
}

Facts guard_facts(const Compilation& c) {
  Facts out;
  // Of older PyTorch, and of our own logs.
  each_text(c, "dynamo_guards", [&](const std::string& text) {
    const Json list = Json::parse(text, nullptr, false);
    if (!list.is_array()) return;
    for (const Json& guard : list)
      if (guard.is_object() && guard.contains("code"))
        out.emplace_back(without_addresses(text_of(guard["code"])), "guarded");
  });
  each_text(c, "dynamo_cpp_guards_str", [&](const std::string& text) {
    each_line(text, [&](std::string_view line) {
      line.remove_prefix(std::min(line.size(), line.find_first_not_of("|+- ")));
      const std::size_t colon = line.find(": ");
      if (colon == std::string_view::npos) return;
      const std::string_view kind = line.substr(0, colon);
      if (kind.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != std::string_view::npos) return;  // a manager
      std::string_view guard = line.substr(colon + 2);
      if (const std::size_t comment = guard.find("  # "); comment != std::string_view::npos)
        guard = guard.substr(0, comment);
      const std::string checked = without_addresses(trimmed(guard));
      // What is guarded ends where it is compared.
      std::size_t end = checked.size();
      for (const std::string_view sign : {", ", " == ", " is ", " against ", " != ", " <= ", " < ", " >= ", " > "})
        end = std::min(end, checked.find(sign));
      const std::size_t value = end + (checked.compare(end, 2, ", ") == 0 ? 2 : 0);
      out.emplace_back(
          fmt::format("{} {}", kind, checked.substr(0, end)),
          end == checked.size() ? "guarded" : std::string(trimmed(std::string_view(checked).substr(value))));
    });
  });
  return out;
}

Facts kernel_facts(const Compilation& c) {
  std::map<std::string, int> count;
  const auto add = [&](std::string name) {
    ++count[std::move(name)];
    ++count["all calls"];
  };
  each_text(c, "inductor_output_code", [&](const std::string& text) {
    for (const InductorKernel& k : read_output_code(text)) {
      // The number at the end tells kernels of one code apart.
      const std::size_t last = k.name.find_last_not_of("0123456789");
      const bool numbered = last != std::string::npos && last + 1 < k.name.size() && k.name[last] == '_';
      add(numbered ? k.name.substr(0, last) : k.name);
    }
    // Of our own plans, where a number stands before the name: "kernel k3_gelu(".
    each_line(text, [&](std::string_view line) {
      if (!line.starts_with("kernel k")) return;
      const std::size_t name = line.find('_'), end = line.find('(');
      if (name < end && end != std::string_view::npos) add(std::string(line.substr(name + 1, end - name - 1)));
    });
  });
  Facts out;
  for (const auto& [name, calls] : count) out.emplace_back(name, std::to_string(calls));
  return out;
}

Facts cache_facts(const Compilation& c) {
  Facts out;
  for (const Artefact* a : c.artefacts) {
    const std::string_view name = record_name(*a);
    if (a->is_graph() || name.find("cache") == std::string_view::npos) continue;
    for (const std::string_view answer : {"hit", "miss", "bypass"})
      if (name.ends_with(answer) && name.size() > answer.size() + 1)
        out.emplace_back(name.substr(0, name.size() - answer.size() - 1), answer);
  }
  return out;
}

Facts time_facts(const Compilation& c) {
  Facts out;
  for (const std::string name : {"compilation_metrics", "bwd_compilation_metrics"})
    each_record(c, name, [&](const Json& record) {
      for (const auto& [key, value] : record.items())
        if (key.ends_with("_time_s") && value.is_number())
          out.emplace_back((name == "compilation_metrics" ? "" : "backward ") + key.substr(0, key.size() - 7),
                           fmt::format("{:.3g} s", value.get<double>()));
    });
  return out;
}

}  // namespace partita
