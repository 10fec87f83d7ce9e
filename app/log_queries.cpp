#include "app/log_queries.h"

#include <fmt/format.h>

#include "core/diff/facts.h"
#include "core/diff/timeline.h"
#include "core/load/compile_times.h"

namespace partita {
namespace {

std::string label(const Run& run, const Compilation& c, bool several) {
  return (several ? run.name + "  " : std::string()) + (c.key.empty() ? "" : c.key + "  ") +
         (c.code.empty() ? "" : c.code + "  ");
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

Result<QueryAnswer> recompilations_of(const QuerySubject& subject, const std::vector<std::string>&) {
  return facts_of(subject, recompilation_facts, "reason");
}

Result<QueryAnswer> caches_of(const QuerySubject& subject, const std::vector<std::string>&) {
  return facts_of(subject, cache_facts, "answer");
}

Result<QueryAnswer> guards_of(const QuerySubject& subject, const std::vector<std::string>&) {
  return facts_of(subject, guard_facts, "guard");
}

}  // namespace partita
