// Answers about trace logs, from the records of each compilation. A graph break or recompilation leads to the last node
// of dynamo's graph before its line.
#include "app/tasks/log_queries.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/tasks/profile_queries.h"
#include "core/base/number_text.h"
#include "core/diff/compared_runs.h"
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

/// "0" of "0/1": the number of a function, of which there are several compilations.
std::string_view frame_of(std::string_view key) {
  return key.substr(0, key.rfind('/'));
}

/// A text of a log that says why dynamo did something in a compilation.
struct Reason {
  const Artefact* record;
  std::vector<const Compilation*> attempts;  ///< at the compilation
  std::vector<const Compilation*> others;    ///< of the same function
  std::string label;                         ///< "0/1", "rank 2  0/1"
  std::string function;                      ///< "forward train.py:13"; empty: not known
  std::string text;
};

/// Calls f with each record of that name.
void each_reason(const std::vector<Run>& runs, std::string_view name, const auto& f) {
  for (const Run& run : runs)
    for (const Compilation& c : run.compilations)
      for (const Artefact* a : c.artefacts) {
        if (record_name(*a) != name) continue;
        const auto text = a->text();
        if (!text) continue;
        Reason reason{a, {}, {}, without_attempt(c.key), {}, *text};
        for (const Compilation& other : run.compilations) {
          const std::string key = without_attempt(other.key);
          if (frame_of(key) != frame_of(reason.label)) continue;
          (key == reason.label ? reason.attempts : reason.others).push_back(&other);
          // A compilation that was given up does not name the function.
          if (!other.code.empty() && (key == reason.label || reason.function.empty())) reason.function = other.code;
        }
        if (runs.size() > 1) reason.label = run.name + "  " + reason.label;
        f(reason);
      }
}

/// A guard's file has lost its first folders where its path is long. Nodes of the function know the whole path.
void complete(StackFrame& at, const Reason& reason) {
  if (at.file.empty() || at.file.starts_with('/')) return;
  const std::string ending = "/" + at.file;
  for (const auto* compilations : {&reason.attempts, &reason.others})
    for (const Compilation* c : *compilations)
      for (const Artefact* a : c->graphs()) {
        if (a->kind != ArtefactKind::Dynamo) continue;
        const auto graph = a->graph();
        if (!graph) continue;
        for (const Node* node : **graph)
          if (node->origin && node->origin->of_user().file.ends_with(ending)) {
            at.file = node->origin->of_user().file;
            return;
          }
      }
}

/// The graph that dynamo made in the compilation, and in it the last node up to this line; without a graph the record.
void lead_to(QueryRow& row, const Reason& reason, const StackFrame& at) {
  row.at = at;
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

/// "failed with Unsupported: Dynamo recompile limit exceeded"; empty for a compilation that made code.
std::string failure_of(const std::vector<const Compilation*>& attempts) {
  for (const Compilation* attempt : attempts)
    if (const Artefact* metrics = attempt->record("compilation_metrics"))
      for (const nlohmann::json& record : records(*metrics))
        if (const auto failure = record.is_object() ? read_compile_failure(record) : std::nullopt)
          return fmt::format("failed with {}: {}", failure->type, failure->why.reason);
  return {};
}

/// A row for each fact of each compilation.
QueryAnswer facts_of(const QuerySubject& subject, Facts (*facts)(const Compilation&), const char* what) {
  QueryAnswer out;
  const std::vector<Run> runs = runs_of({&subject.loaded});
  for (const Run& run : runs)
    for (const Compilation& c : run.compilations)
      for (const auto& [name, value] : facts(c))
        out.rows.push_back({{}, fmt::format("{}{}: {}", label(run, c, runs.size() > 1), name, value), {}});
  out.text = out.rows.empty() ? fmt::format("no {}s are in it", what) : count_text(out.rows.size(), what);
  return out;
}

/// Graph breaks of one line for one reason, or compilations that it ended with an exception.
struct BrokenLine {
  GraphBreak broken;
  std::string failed;               ///< the exception; empty: a graph break
  std::string function;             ///< of the first compilation
  std::vector<std::string> graphs;  ///< compile ids
  QueryRow row;
};

/// One for each line and reason, from the first to the last of the program.
std::vector<BrokenLine> broken_lines(const std::vector<Run>& runs) {
  std::vector<BrokenLine> lines;
  const auto add = [&](GraphBreak broken, std::string failed, const Reason& reason) {
    auto line = std::ranges::find_if(lines, [&](const BrokenLine& l) {
      return l.broken.at.file == broken.at.file && l.broken.at.line == broken.at.line &&
             l.broken.reason == broken.reason && l.failed == failed;
    });
    if (line == lines.end()) {
      lines.push_back({std::move(broken), std::move(failed), reason.function, {}, {}});
      line = lines.end() - 1;
    }
    if (line->row.node.empty()) lead_to(line->row, reason, line->broken.at);  // some compilations made no graph
    line->graphs.push_back(reason.label);
  };
  each_reason(runs, "dynamo_graph_break_reason",
              [&](const Reason& reason) { add(read_graph_break(reason.text), {}, reason); });
  each_reason(runs, "compilation_metrics", [&](const Reason& reason) {
    for (const nlohmann::json& metrics : records(*reason.record)) {
      auto failure = metrics.is_object() ? read_compile_failure(metrics) : std::nullopt;
      // A break at which the function cannot be cut ends its compilation, too.
      const bool is_listed = failure && std::ranges::any_of(lines, [&](const BrokenLine& l) {
                               return l.broken.reason == failure->why.reason &&
                                      std::ranges::find(l.graphs, reason.label) != l.graphs.end();
                             });
      if (failure && !is_listed) add(std::move(failure->why), std::move(failure->type), reason);
    }
  });
  std::ranges::stable_sort(lines, {},
                           [](const BrokenLine& l) { return std::pair(l.broken.at.file, l.broken.at.line); });
  return lines;
}

/// "1 graph break, 3 times in all, and 1 compilation that failed".
std::string count_of(const std::vector<BrokenLine>& lines) {
  std::size_t breaks = 0, times = 0, failures = 0;
  for (const BrokenLine& line : lines) {
    if (!line.failed.empty()) {
      failures += line.graphs.size();
      continue;
    }
    ++breaks;
    times += line.graphs.size();
  }
  std::string out = breaks ? count_text(breaks, "graph break") : "no graph break is in it";
  if (times > breaks) out += fmt::format(", {} times in all", times);
  if (failures) out += fmt::format("; {} failed", count_text(failures, "compilation"));
  return out;
}

}  // namespace

Result<QueryAnswer> compile_times_of(const QuerySubject& subject, const std::vector<std::string>&) {
  if (!subject.request.profile.empty()) return run_times_of(subject);
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
  std::vector<BrokenLine> lines = broken_lines(runs_of({&subject.loaded}));
  QueryAnswer out{count_of(lines), {}, {"Line", "Why", "Times", "In", "Code", "What would help"}};
  for (BrokenLine& line : lines) {
    const GraphBreak& b = line.broken;
    const std::string in = fmt::format("{}", fmt::join(line.graphs, ", ")),
                      hints = fmt::format("{}", fmt::join(b.hints, " ")),
                      times = line.graphs.size() == 1 ? "once" : fmt::format("{} times", line.graphs.size());
    std::string what;  // it came to
    if (!line.failed.empty())
      what = fmt::format("the compilation failed with {}", line.failed);
    else if (b.runs_in_eager)
      what = "the whole function runs in eager mode";
    std::string why = b.reason;
    if (!b.explanation.empty()) why += ": " + b.explanation;
    if (!what.empty()) why += fmt::format(" ({})", what);
    line.row.cells = {b.at.file.empty() ? line.function : short_place(b.at),
                      std::move(why),
                      std::to_string(line.graphs.size()),
                      in,
                      b.at.code,
                      hints};
    line.row.text = fmt::format("{}{}\n    {}\n    {}, in {}", b.at.file.empty() ? line.function : place(b.at),
                                b.at.code.empty() ? "" : "  " + b.at.code, b.reason, times, in);
    if (!what.empty()) line.row.text += ": " + what;
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
    std::vector<FailedGuard> guards = read_recompile_reasons(reason.text);
    Again& again = all.emplace_back(Again{reason.function, {}});
    StackFrame at;  // of the newest code's guard that has a line
    std::vector<std::string> failed;
    for (FailedGuard& g : guards) {
      complete(g.at, reason);
      if (at.file.empty()) at = g.at;
      failed.push_back(g.guard + (g.earlier.empty() ? "" : fmt::format(" ({})", g.earlier)));
    }
    lead_to(again.row, reason, at);
    again.row.cells = {reason.function, reason.label, fmt::format("{}", fmt::join(failed, "; ")), short_place(at),
                       at.code};
    again.row.text = fmt::format("{}{}{}", reason.function, reason.function.empty() ? "" : "  ", reason.label);
    if (const std::string failed = failure_of(reason.attempts); !failed.empty()) {
      again.row.cells[2] = failed + ": " + again.row.cells[2];
      again.row.text += "  " + failed;
    }
    for (const FailedGuard& g : guards) {
      again.row.text += "\n    " + g.guard + (g.earlier.empty() ? "" : ", guarded by " + g.earlier);
      if (!g.at.file.empty()) again.row.text += fmt::format("\n      {}  {}", place(g.at), g.at.code);
    }
  });
  std::ranges::stable_sort(all, {}, [](const Again& again) {  // "forward train.py:13"
    const std::size_t space = again.function.rfind(' ') + 1, colon = again.function.rfind(':') + 1;
    return std::pair(again.function.substr(space, colon - space), std::atoi(again.function.c_str() + colon));
  });
  QueryAnswer out{count_text(all.size(), "recompilation"),
                  {},
                  {"Function", "Compiled as", "Guard that failed (of)", "Line", "Code"}};
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
