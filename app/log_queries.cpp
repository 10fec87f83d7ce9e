#include "app/log_queries.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/diff/facts.h"
#include "core/diff/timeline.h"
#include "core/load/compile_times.h"
#include "core/load/dynamo_reasons.h"
#include "core/load/records.h"

namespace partita {
namespace {

std::string label(const Run& run, const Compilation& c, bool several) {
  return (several ? run.name + "  " : std::string()) + (c.key.empty() ? "" : c.key + "  ") +
         (c.code.empty() ? "" : c.code + "  ");
}

std::string place(const StackFrame& at) {
  return at.file.empty() ? std::string() : fmt::format("{}:{}", at.file, at.line);
}

std::string short_place(const StackFrame& at) {
  return place({at.file.substr(at.file.rfind('/') + 1), at.line, {}, {}});
}

/// "rank 2 0/0" of "rank 2 0/0_1": several attempts at a compilation are one.
std::string without_attempt(const std::string& key) {
  const std::size_t attempt = key.rfind('_'), slash = key.rfind('/');
  const bool has = attempt != std::string::npos && slash != std::string::npos && attempt > slash;
  return has ? key.substr(0, attempt) : key;
}

/// A text of a log that says why dynamo did something in a compilation.
struct Reason {
  const Artefact* record;
  std::vector<const Compilation*> attempts;  ///< at the compilation
  std::string label;                         ///< "0/1", "rank 2  0/1"
  std::string function;                      ///< "forward train.py:13"; empty: not known
  std::string text;
};

/// Calls f with each record of that name.
template <class F>
void each_reason(const std::vector<Run>& runs, std::string_view name, const F& f) {
  for (const Run& run : runs)
    for (const Compilation& c : run.compilations)
      for (const Artefact* a : c.artefacts) {
        if (record_name(*a) != name) continue;
        const auto text = a->text();
        if (!text) continue;
        Reason reason{a, {}, without_attempt(c.key), {}, *text};
        for (const Compilation& other : run.compilations) {
          if (without_attempt(other.key) != reason.label) continue;
          reason.attempts.push_back(&other);
          if (!other.code.empty()) reason.function = other.code;
        }
        if (runs.size() > 1) reason.label = run.name + "  " + reason.label;
        f(reason);
      }
}

/// The graph that dynamo made in the compilation, and in it the last node up to this line; without a graph the record.
void lead_to(QueryRow& row, const Reason& reason, const StackFrame& at) {
  row.artefact = reason.record->id;
  for (const Compilation* attempt : reason.attempts)
    for (const Artefact* a : attempt->graphs()) {
      if (a->kind != ArtefactKind::Dynamo) continue;
      row.artefact = a->id;
      row.node.clear();
      const auto graph = a->graph();
      if (!graph || at.file.empty()) continue;
      for (const Node* node : **graph) {
        if (!node->origin) continue;
        const StackFrame& from = node->origin->of_user();
        if (from.file == at.file && from.line <= at.line) row.node = node->name();
      }
    }
}

/// A row for each fact of each compilation.
QueryAnswer facts_of(const QuerySubject& subject, Facts (*facts)(const Compilation&), const char* what) {
  QueryAnswer out;
  const std::vector<Run> runs = runs_of({&subject.loaded});
  for (const Run& run : runs)
    for (const Compilation& c : run.compilations)
      for (const auto& [name, value] : facts(c))
        out.rows.push_back({{}, fmt::format("{}{}: {}", label(run, c, runs.size() > 1), name, value), {}});
  out.text = out.rows.empty() ? fmt::format("no {}s are in it", what)
                              : fmt::format("{} {}{}", out.rows.size(), what, out.rows.size() == 1 ? "" : "s");
  return out;
}

}  // namespace

Result<QueryAnswer> compile_times_of(const QuerySubject& subject, const std::vector<std::string>&) {
  QueryAnswer out;
  const std::vector<Run> runs = runs_of({&subject.loaded});
  for (const Run& run : runs)
    for (const Compilation& c : run.compilations)
      for (const Artefact* a : c.artefacts) {
        if (!has_timeline(*a)) continue;
        for (const CompileStep& step : compile_steps(*a))
          out.rows.push_back({{},
                              fmt::format("{:>9.3f} s  {:>9.3f} s of its own  {}{:>{}}{}{}", step.seconds,
                                          step.self_seconds, label(run, c, runs.size() > 1), "", 2 * step.depth,
                                          step.name, step.count > 1 ? fmt::format(", {} times", step.count) : ""),
                              step.seconds});
      }
  out.text = make_timeline(subject.loaded).summary();
  return out;
}

Result<QueryAnswer> breaks_of(const QuerySubject& subject, const std::vector<std::string>&) {
  struct Line {
    GraphBreak broken;
    std::vector<std::string> graphs;  ///< compile ids
    QueryRow row;
  };
  std::vector<Line> lines;
  std::size_t times = 0;
  const std::vector<Run> runs = runs_of({&subject.loaded});
  each_reason(runs, "dynamo_graph_break_reason", [&](const Reason& reason) {
    GraphBreak broken = read_graph_break(reason.text);
    ++times;
    auto line = std::ranges::find_if(lines, [&](const Line& l) {
      return l.broken.at.file == broken.at.file && l.broken.at.line == broken.at.line &&
             l.broken.reason == broken.reason;
    });
    if (line == lines.end()) {
      lines.push_back({std::move(broken), {}, {}});
      line = lines.end() - 1;
    }
    if (line->row.node.empty()) lead_to(line->row, reason, line->broken.at);  // some compilations made no graph
    line->graphs.push_back(reason.label);
  });
  std::ranges::stable_sort(lines, {}, [](const Line& l) { return std::pair(l.broken.at.file, l.broken.at.line); });
  QueryAnswer out{counted(lines.size(), "graph break"), {}, {"Line", "Why", "Times", "In", "Code", "What would help"}};
  if (lines.empty()) out.text = "no graph break is in it";
  if (times > lines.size()) out.text += fmt::format(", {} times in all", times);
  for (Line& line : lines) {
    const GraphBreak& b = line.broken;
    const std::string in = fmt::format("{}", fmt::join(line.graphs, ", ")),
                      hints = fmt::format("{}", fmt::join(b.hints, " "));
    line.row.cells = {short_place(b.at),
                      b.explanation.empty() ? b.reason : b.reason + ": " + b.explanation,
                      std::to_string(line.graphs.size()),
                      in,
                      b.at.code,
                      hints};
    line.row.text =
        fmt::format("{}{}\n    {}\n    {} in {}", place(b.at), b.at.code.empty() ? "" : "  " + b.at.code, b.reason,
                    line.graphs.size() == 1 ? "once," : fmt::format("{} times,", line.graphs.size()), in);
    if (!b.explanation.empty()) line.row.text += "\n    " + b.explanation;
    for (const std::string& hint : b.hints) line.row.text += "\n    Hint: " + hint;
    out.rows.push_back(std::move(line.row));
  }
  return out;
}

Result<QueryAnswer> recompilations_of(const QuerySubject& subject, const std::vector<std::string>&) {
  struct Again {
    std::string function;
    QueryRow row;
  };
  std::vector<Again> all;
  const std::vector<Run> runs = runs_of({&subject.loaded});
  each_reason(runs, "recompile_reasons", [&](const Reason& reason) {
    const std::vector<FailedGuard> guards = read_recompile_reasons(reason.text);
    Again& again = all.emplace_back(Again{reason.function, {}});
    StackFrame at;  // of the newest code's guard that has a line
    std::vector<std::string> failed;
    for (const FailedGuard& g : guards) {
      if (at.file.empty()) at = g.at;
      failed.push_back(g.guard + (g.earlier.empty() ? "" : fmt::format(" ({})", g.earlier)));
    }
    lead_to(again.row, reason, at);
    again.row.cells = {reason.function, reason.label, fmt::format("{}", fmt::join(failed, "; ")), short_place(at),
                       at.code};
    again.row.text = fmt::format("{}{}{}", reason.function, reason.function.empty() ? "" : "  ", reason.label);
    for (const FailedGuard& g : guards) {
      again.row.text += "\n    " + g.guard + (g.earlier.empty() ? "" : ", guarded by " + g.earlier);
      if (!g.at.file.empty()) again.row.text += fmt::format("\n      {}  {}", place(g.at), g.at.code);
    }
  });
  std::ranges::stable_sort(all, {}, [](const Again& again) {  // "forward train.py:13"
    const std::size_t space = again.function.rfind(' ') + 1, colon = again.function.rfind(':') + 1;
    return std::pair(again.function.substr(space, colon - space), std::atoi(again.function.c_str() + colon));
  });
  QueryAnswer out{
      counted(all.size(), "recompilation"), {}, {"Function", "Compiled as", "Guard that failed (of)", "Line", "Code"}};
  if (all.empty()) out.text = "no recompilation is in it";
  for (Again& again : all) out.rows.push_back(std::move(again.row));
  return out;
}

Result<QueryAnswer> caches_of(const QuerySubject& subject, const std::vector<std::string>&) {
  return facts_of(subject, cache_facts, "answer");
}

Result<QueryAnswer> guards_of(const QuerySubject& subject, const std::vector<std::string>&) {
  return facts_of(subject, guard_facts, "guard");
}

}  // namespace partita
