#include "core/load/dynamo_reasons.h"

#include <algorithm>
#include <charconv>
#include <span>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/load/records.h"

namespace partita {
namespace {

constexpr std::string_view kTrace = "User stack trace:";
/// What stands above the lines of the program, in a break and in the exception of one that is an error.
constexpr std::string_view kBreakTraces[] = {"User code traceback:", "from user code:", "User stack:"};
/// What stands around a reason and is none: what was traced, that dynamo went on after the break, where values are
/// from.
constexpr std::string_view kAround[] = {"Encountered graph break when attempting to trace",
                                        "Failed to handle graph break gracefully",
                                        "*** While handling this graph break", "Stack variable source attribution:"};

/// What stands above failed guards in a log of stderr.
constexpr std::string_view kAroundGuards[] = {"Recompiling function ", "triggered by the following guard failure(s):"};

bool begins_with_any(std::string_view line, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view beginning) { return line.starts_with(beginning); });
}

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

/// "FILE:LINE in FUNCTION", behind which there may be more words in brackets.
StackFrame read_guard_place(std::string_view text) {
  StackFrame at;
  const std::size_t in = text.find(" in ");
  if (in == std::string_view::npos) return at;
  read_place(text.substr(0, in), at);
  text.remove_prefix(in + 4);
  if (!at.file.empty()) at.function = text.substr(0, text.find(' '));
  return at;
}

/// "1/0: GUARD  # CODE  # PLACE"; the place's file may be cut at its beginning, and the code have a comment of its own.
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
  const std::size_t code = first + comment.size();
  for (std::size_t last = first, next; last != std::string_view::npos; last = next) {
    next = line.find(comment, last + comment.size());
    const std::size_t begin = last + comment.size();
    const std::string_view place = trimmed(line.substr(begin, next == line.npos ? next : next - begin));
    if (place.starts_with('(')) continue;  // where PyTorch made it, not the program
    out.at = read_guard_place(place);
    if (out.at.file.empty()) continue;
    if (last != first) out.at.code = trimmed(line.substr(code, last - code));
    break;
  }
  return out;
}

void add_guards(std::string_view text, std::vector<FailedGuard>& out) {
  bool in_trace = false;
  for (const std::string_view line : lines_of(text)) {
    if (trimmed(line).empty() || begins_with_any(trimmed(line), kAroundGuards)) continue;
    if (line.starts_with(kTrace)) {
      in_trace = true;
      if (!out.empty()) out.back().at = {};
    } else if (in_trace && indented(line) && !out.empty()) {
      read_trace_line(line, out.back().at);
    } else {
      in_trace = false;
      const std::string_view words = trimmed(line);
      out.push_back(read_guard(behind(words, "- ").value_or(words)));
    }
  }
}

}  // namespace

GraphBreak read_graph_break(std::string_view text) {
  GraphBreak out;
  std::vector<std::string> reasons;
  StackFrame innermost;
  bool in_trace = false;
  for (const std::string_view line : lines_of(text)) {
    const std::string_view words = trimmed(line);
    constexpr std::string_view at = "in user code at ";
    if (words.empty()) continue;
    if (words.starts_with("Traceback (most recent call last)")) break;  // of PyTorch's own code
    out.runs_in_eager = out.runs_in_eager || words.find("falling back to eager") != std::string_view::npos;
    if (begins_with_any(words, kBreakTraces)) {
      in_trace = true;
    } else if (in_trace) {
      read_trace_line(line, innermost);
    } else if (const auto found = words.find(at); out.at.file.empty() && found != std::string_view::npos) {
      read_place(words.substr(found + at.size()), out.at);
    } else if (const auto explanation = behind(words, "Explanation:")) {
      if (out.explanation.empty()) out.explanation = *explanation;  // others are of breaks that it led to
    } else if (const auto hint = behind(words, "Hint:")) {
      out.hints.emplace_back(*hint);
    } else if (const auto item = behind(words, "- "); item && indented(line)) {
      out.explanation += (out.explanation.empty() ? "" : " ") + std::string(*item);
    } else if (!indented(line)) {
      const auto reason = behind(words, "Graph Break Reason:");
      reasons.emplace_back(reason ? *reason : behind(words, "Reason:").value_or(words));
    }
  }
  if (reasons.size() > 1) {
    const std::string only = reasons.front();
    std::erase_if(reasons, [](const std::string& reason) { return begins_with_any(reason, kAround); });
    if (reasons.empty()) reasons.push_back(only);
  }
  for (const std::string& reason : reasons)
    out.reason += (out.reason.empty() ? "" : out.reason.ends_with(':') ? " " : "; ") + reason;
  if (out.reason.empty()) out.reason = "no reason is given";
  if (out.at.file.empty()) out.at = innermost;
  if (innermost.file == out.at.file && innermost.line == out.at.line) out.at = innermost;
  return out;
}

std::optional<CompileFailure> read_compile_failure(const nlohmann::json& metrics) {
  CompileFailure out{text_field(metrics, "fail_type"), {}};
  if (out.type.empty()) return std::nullopt;
  out.why = read_graph_break(text_field(metrics, "fail_reason"));
  if (!out.why.at.file.empty()) return out;
  out.why.at.file = text_field(metrics, "fail_user_frame_filename");
  out.why.at.line = static_cast<int>(int_field(metrics, "fail_user_frame_lineno"));
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
