#pragma once
// Who says whether a candidate fails, and how.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/aot/compile_fn.h"
#include "core/compare/torch_same.h"
#include "core/minify/candidate.h"
#include "core/minify/child.h"
#include "core/minify/failure.h"

namespace partita::minify {

/// Nothing when the candidate does not fail.
using Verdict = std::optional<Failure>;

struct Oracle {
  /// What is asked, in words that belong to the answers in a memory: "accuracy:cpu tolerance 0.001".
  std::string question;
  /// An error says that there is no answer; for a candidate that means it is not taken.
  std::function<Result<Verdict>(const Candidate& candidate, const Progress* progress)> judge;
  /// The judge may crash, hang or use up memory, or several are to judge at once: each judges in a child process. All
  /// or none: what judged here may have started threads, which a fork does not take along.
  bool in_child = false;
  ChildLimits limits;
  /// Calls that must be inputs before the oracle can say anything: random ones, for accuracy.
  std::function<bool(const Node&)> cut_first;
};

/// Fails when the graph cannot be compiled or run.
Oracle crash_oracle(const std::string& name, const CompileFn& compile);
/// Fails when an output is wrong by torch_difference(): compiled against interpreted against interpreted in double.
/// A graph that cannot be compiled or run is another failure.
Oracle accuracy_oracle(const std::string& name, const CompileFn& compile, const SameOptions& options, int threads);
/// Fails when the command's exit code is 0 or, with `pattern`, when its output holds a match of the regular expression.
/// {} as for run_on_case.
Result<Oracle> command_oracle(const std::string& command, const std::string& pattern, const ChildLimits& limits);

/// Asks another program, `partita minify graph.py --once --json` of the same check, in a process of its own: for
/// callers whose threads forbid in_child, as a window's. `program`: the executable with the verb and its options; {} as
/// for run_on_case.
Oracle program_oracle(const std::string& question, const std::string& program, const ChildLimits& limits);

/// Runs a command in which {} is a file with the candidate's FX text; beside it lie inputs.safetensors and graph.input.
/// Fault::Cancelled; a timeout or a signal is an end.
Result<ChildEnd> run_on_case(const std::string& command, const Candidate& candidate, const ChildLimits& limits,
                             const Progress* progress);

struct Judgement {
  Result<Verdict> verdict;  ///< an error where there is none
  double seconds = 0;
};
/// One for each candidate; `jobs` at a time when the oracle judges in children.
std::vector<Judgement> judge(const Oracle& oracle, std::span<const Candidate> candidates, int jobs,
                             const Progress* progress);
Result<Verdict> judge(const Oracle& oracle, const Candidate& candidate, const Progress* progress);

}  // namespace partita::minify
