#include "core/load/dynamo_reasons.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace partita {
namespace {

constexpr std::string_view kTrace = "User stack trace:", kBreakTrace = "User code traceback:";

bool indented(std::string_view line) {
  return line.starts_with(' ') || line.starts_with('\t');
}

/// What stands behind the beginning; nothing when the text begins otherwise.
std::optional<std::string_view> behind(std::string_view text, std::string_view beginning) {
  if (!text.starts_with(beginning)) return std::nullopt;
  return trimmed(text.substr(beginning.size()));
}

/// FILE:LINE at the end of a text.
void read_place(std::string_view text, StackFrame& at) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return;
  int line = 0;
  const auto [end, failed] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), line);
  if (failed != std::errc() || end != text.data() + text.size()) return;
  at.file = trimmed(text.substr(0, colon));
  at.line = line;
}

/// A line of a Python traceback, `File "x.py", line 7, in forward`.
bool read_frame(std::string_view line, StackFrame& at) {
  constexpr std::string_view before = "File \"", between = "\", line ", in = ", in ";
  const std::size_t number = line.find(between);
  if (!line.starts_with(before) || number == std::string_view::npos) return false;
  StackFrame found;
  found.file = line.substr(before.size(), number - before.size());
  line.remove_prefix(number + between.size());
  if (std::from_chars(line.data(), line.data() + line.size(), found.line).ec != std::errc()) return false;
  if (const std::size_t name = line.find(in); name != std::string_view::npos)
    found.function = trimmed(line.substr(name + in.size()));
  at = std::move(found);
  return true;
}

/// A line of a trace: a frame, or the code of the frame before it. The innermost one stays.
void read_trace_line(std::string_view line, StackFrame& at) {
  line = trimmed(line);
  if (line.empty() || read_frame(line, at)) return;
  if (at.code.empty() && line.find_first_not_of("^~ ") != std::string_view::npos) at.code = line;
}

/// "1/0: GUARD  # CODE  # PLACE in FUNCTION"; the place's file may be cut at its beginning.
FailedGuard read_guard(std::string_view line) {
  FailedGuard out;
  const std::size_t colon = line.find(": ");
  const std::string_view key = line.substr(0, std::min(colon, line.size()));
  if (colon != std::string_view::npos && key.find('/') != std::string_view::npos &&
      key.find_first_not_of("0123456789/_![]-") == std::string_view::npos) {
    out.earlier = key;
    line.remove_prefix(colon + 2);
  }
  constexpr std::string_view comment = "  # ";
  const std::size_t first = line.find(comment);
  out.guard = trimmed(line.substr(0, first));
  if (first == std::string_view::npos) return out;
  const std::size_t last = line.rfind(comment);
  std::string_view place = trimmed(line.substr(last + comment.size()));
  if (place.starts_with('(')) return out;  // where PyTorch made it, not the program
  if (last != first) out.at.code = trimmed(line.substr(first + comment.size(), last - first - comment.size()));
  if (const std::size_t in = place.rfind(" in "); in != std::string_view::npos) {
    out.at.function = place.substr(in + 4);
    place = place.substr(0, in);
  }
  read_place(place, out.at);
  return out;
}

void add_guards(std::string_view text, std::vector<FailedGuard>& out) {
  bool in_trace = false;
  for (const std::string_view line : lines_of(text)) {
    if (trimmed(line).empty()) continue;
    if (line.starts_with(kTrace)) {
      in_trace = true;
      if (!out.empty()) out.back().at = {};
    } else if (in_trace && indented(line) && !out.empty()) {
      read_trace_line(line, out.back().at);
    } else {
      in_trace = false;
      out.push_back(read_guard(trimmed(line)));
    }
  }
}

}  // namespace

GraphBreak read_graph_break(std::string_view text) {
  constexpr std::string_view generic = "Encountered graph break when attempting to trace";
  GraphBreak out;
  std::vector<std::string> reasons;
  StackFrame innermost;
  bool in_trace = false;
  for (const std::string_view line : lines_of(text)) {
    const std::string_view words = trimmed(line);
    constexpr std::string_view at = "in user code at ";
    if (words.empty()) continue;
    if (words.starts_with("Traceback (most recent call last)")) break;  // of PyTorch's own code
    if (words.starts_with(kBreakTrace)) {
      in_trace = true;
    } else if (in_trace) {
      read_trace_line(line, innermost);
    } else if (const auto found = words.find(at); out.at.file.empty() && found != std::string_view::npos) {
      read_place(words.substr(found + at.size()), out.at);
    } else if (const auto explanation = behind(words, "Explanation:")) {
      out.explanation = *explanation;
    } else if (const auto hint = behind(words, "Hint:")) {
      out.hints.emplace_back(*hint);
    } else if (!indented(line)) {
      const auto reason = behind(words, "Graph Break Reason:");
      reasons.emplace_back(reason ? *reason : behind(words, "Reason:").value_or(words));
    }
  }
  // That something was being traced says less than what follows it.
  if (reasons.size() > 1)
    std::erase_if(reasons, [&](const std::string& reason) { return reason.starts_with(generic); });
  for (const std::string& reason : reasons) out.reason += (out.reason.empty() ? "" : "; ") + reason;
  if (out.reason.empty()) out.reason = "no reason is given";
  if (out.at.file.empty()) out.at = innermost;
  if (innermost.file == out.at.file && innermost.line == out.at.line) out.at = innermost;
  return out;
}

std::vector<FailedGuard> read_recompile_reasons(std::string_view text) {
  std::vector<FailedGuard> out;
  const auto list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array()) {
    add_guards(list.is_string() ? list.get<std::string>() : std::string(text), out);
    return out;
  }
  for (const auto& reason : list)
    add_guards(reason.is_string() ? reason.get<std::string>()
                                  : reason.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
               out);
  return out;
}

}  // namespace partita
