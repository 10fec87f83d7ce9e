#pragma once
// How each try of a minification is judged: by this process and its forks or, for a program with threads, by another
// program.
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "codegen/backends.h"
#include "core/minify/culprit.h"
#include "core/minify/repro.h"
#include "core/minify/start.h"
#include "core/store/code_store.h"

namespace partita {

/// The failure that is looked for, as the options of `partita minify` say it.
struct MinifyCheck {
  std::string check;  ///< "crash" or "accuracy", a backend behind a colon or default_compiler(); empty: `command`
  std::string command, matches;  ///< as minify::command_oracle takes them
  std::string plant;             ///< "aten.tanh.default:wrong": a fault to be found; empty: none
  int jobs = 0;                  ///< tries at once; 0: as many as there are processors, and one of a command
  bool train = false;            ///< the graph is of a training step, as inductor is told
  int python_process = -1;       ///< descriptor of the starter's Python process (torch::share_process); -1: its own
  double timeout = 60, tolerance = 1e-3;  ///< seconds a try may take; absolute and relative
  std::size_t memory_limit = 0;           ///< MiB a try may take; 0: no limit
};

struct MinifyQuestion {
  std::string name;                  ///< "accuracy:cpu", "command"
  const Backend* backend = nullptr;  ///< null for commands
  BackendOptions backend_options;
  std::function<minify::Oracle(const CompileFn&)> oracle_of;  ///< unset for commands
  minify::Oracle oracle;
  int jobs = 1;  ///< tries at once
  double tolerance = 1e-3;
  std::string options;  ///< of `partita minify` that ask it, for a shell
  std::string again;    ///< the command that shows the failure again, run in the repro folder
  /// What a torch: backend runs, for repro.py; empty for others.
  std::string torch_backend;
  std::map<std::string, std::string> torch_settings;

  /// Whether the compiler takes functional ATen only.
  bool functional() const { return backend && !backend->takes_any_graph(); }
};
/// Errors cli.usage, backend.unknown and command_oracle's.
Result<MinifyQuestion> minify_question(const MinifyCheck& check);

/// The same question, put to `program` (which has the verb minify) in one process per try. A window uses this, because
/// a process with threads must not fork and go on.
minify::Oracle asked_elsewhere(const MinifyQuestion& question, const MinifyCheck& check, const std::string& program);

/// Finds the guilty pass or kernel for what is left, in this process; empty for backends without stages. A try that
/// takes longer than `hang_seconds` hangs; 0: than the question's limit.
Result<minify::Culprit> find_culprit(const MinifyQuestion& question, const minify::Candidate& smallest,
                                     const minify::Failure& failure, double hang_seconds = 0);
/// The same, by `program`.
Result<minify::Culprit> culprit_elsewhere(const MinifyCheck& check, const std::string& program,
                                          const minify::MinifyResult& reduced, const Progress* progress);
std::string to_json(const minify::Culprit& culprit);

/// Answers that are kept in the store; `session` names the question, the graph and the inputs.
minify::Memory remembered_tries(const std::shared_ptr<CodeStore>& store, const std::string& session);
std::string minify_session(const minify::Start& start, const MinifyQuestion& question);

/// What the window's minifier page asks.
struct MinifyRequest {
  std::string check;     ///< "accuracy" or "crash"
  std::string compiler;  ///< the backend that compiles the graph and its parts
  std::string inputs;    ///< path of an IO file; empty: the archive's samples, else made up
};
/// How a window's minification judges its tries. The oracle is called on a thread of this process; what may crash or
/// hang it hands to other processes.
struct MinifyTool {
  minify::Oracle oracle;
  int jobs = 1;             ///< tries at once
  bool functional = false;  ///< the compiler in question takes functional ATen only
  std::string options;      ///< of `partita minify` that do the same
  minify::ReproText words;  ///< for the repro folder; the culprit is filled in later
  /// Answers of earlier runs; empty: none are kept.
  std::function<minify::Memory(const minify::Start& start)> memory;
  /// Finds the guilty pass or kernel; empty: not offered.
  std::function<Result<minify::Culprit>(const minify::MinifyResult& reduced, const Progress& progress)> culprit;
  /// What the store keeps of the minification, as JSON; empty: nothing.
  std::function<std::string(const minify::MinifyResult& reduced, const minify::Culprit& culprit)> report;
};
/// For a question about `artefact` that is put to `program`. The compiler kPlanted is the default one with the fault
/// `plant`. Errors as minify_question().
Result<MinifyTool> minify_tool(const Artefact& artefact, const MinifyRequest& asked, const std::string& plant,
                               const std::string& program);

/// The texts of the repro folder's README.
minify::ReproText repro_text(const MinifyQuestion& question, const minify::Culprit& culprit);
/// What is kept in the store and printed by --json; `folder`: of the repro, empty when none is written.
std::string minify_report(const minify::MinifyResult& reduced, const minify::Culprit& culprit,
                          const std::string& folder = {});

}  // namespace partita
