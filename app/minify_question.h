#pragma once
// What a minification asks of each try: in this process and its forks, or, for a program with threads, of another one.
#include <memory>
#include <string>

#include "codegen/backends.h"
#include "core/minify/culprit.h"
#include "core/minify/start.h"
#include "core/store/code_store.h"

namespace partita {

/// Which failure is looked for, in the words of `partita minify`.
struct MinifyCheck {
  std::string check;  ///< "crash" or "accuracy", a backend behind a colon or default_compiler(); empty: `command`
  std::string command, matches;  ///< as minify::command_oracle takes them
  std::string plant;             ///< "aten.tanh.default:wrong": a fault to be found; empty: none
  int jobs = 1, threads = 1;
  double timeout = 60, tolerance = 1e-3;  ///< seconds a try may take; absolute and relative
  std::size_t memory_limit = 0;           ///< MiB a try may take; 0: no limit
};

struct MinifyQuestion {
  std::string name;                  ///< "accuracy:cpu", "command"
  const Backend* backend = nullptr;  ///< null for commands
  BackendOptions backend_options;
  std::function<minify::Oracle(const CompileFn&)> oracle_of;  ///< unset for commands
  minify::Oracle oracle;
  double tolerance = 1e-3;
  std::string options;  ///< of `partita minify` that ask it, for a shell
  std::string again;    ///< the command that shows the failure again, run in the repro folder

  /// Wants the compiler functional ATen?
  bool functional() const { return backend && !backend->takes_any_graph; }
};
/// Errors cli.usage, backend.unknown and command_oracle's.
Result<MinifyQuestion> minify_question(const MinifyCheck& check);

/// The same question put to `program`, which has the verb minify, in a process for each try. For windows: nothing is
/// forked off this process but what starts that program.
minify::Oracle asked_elsewhere(const MinifyQuestion& question, const MinifyCheck& check, const std::string& program);

/// The pass or kernel to blame for what is left, asked here; nothing where the backend has no stages.
Result<minify::Culprit> find_culprit(const MinifyQuestion& question, const minify::Candidate& smallest,
                                     const minify::Failure& failure);
/// The same asked of `program`.
Result<minify::Culprit> culprit_elsewhere(const MinifyCheck& check, const std::string& program,
                                          const minify::Reduced& reduced, const Progress* progress);
std::string to_json(const minify::Culprit& culprit);

/// Answers kept in the store under what is asked of which graph on which inputs.
minify::Memory remembered_tries(const std::shared_ptr<CodeStore>& store, const std::string& session);
std::string minify_session(const minify::Start& start, const MinifyQuestion& question);

/// What the repro folder's README says beside the graph.
minify::ReproText repro_text(const MinifyQuestion& question, const minify::Culprit& culprit);
/// What is kept in the store and printed by --json; `folder`: of the repro, empty when none is written.
std::string minify_report(const minify::Reduced& reduced, const minify::Culprit& culprit,
                          const std::string& folder = {});

}  // namespace partita
