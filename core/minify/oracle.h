#pragma once
// Oracles decide whether a candidate fails, and how.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/aot/run_compiled.h"
#include "core/base/result.h"
#include "core/compare/torch_same.h"
#include "core/minify/candidate.h"
#include "core/process/run.h"

namespace partita::minify {

/// How a graph fails. Two failures are the same if `what` and `op` are equal. The rest is for people, and for guessing
/// where to look.
struct Failure {
  /// "signal 11", "exit 3", "timeout", "out of memory", "error CODE", "values", "nan", "dtype", "sizes", "command"; of
  /// an exception in PyTorch "error torch.exception.CLASS: ITS FIRST LINE", without words that hold numbers.
  std::string what;
  std::string op;       ///< operator of the node that an error names, or dtype of the wrong output; empty when unknown
  std::string node;     ///< that node's name in the graph that failed
  std::string message;  ///< one line

  bool same(const Failure& other) const { return what == other.what && op == other.op; }
  /// "signal 11" or "error ops.unknown at aten.foo.default"
  std::string text() const { return op.empty() ? what : what + " at " + op; }
};

/// One line of JSON, for stores and pipes.
std::string to_json(const Failure& failure);
Result<Failure> failure_from_json(const std::string& json);

/// The failure; nullopt when the candidate does not fail.
using Verdict = std::optional<Failure>;

/// A program that tries the candidate in a folder: its FX text is graph.py, and beside it are inputs.safetensors and
/// graph.input.
using CaseProgram = std::function<Result<ProcessWork>(const std::string& folder)>;

struct Oracle {
  /// The question as text, with which answers are stored: "accuracy:cpu tolerance 0.001".
  std::string question;
  /// Called in this process before candidates are judged, and before lost ones are judged again; unset: nothing is to
  /// be made ready. An error ends the reduction.
  std::function<Status()> ready;
  /// Judges a candidate. An error means that there is no answer; the candidate is then not taken.
  std::function<Result<Verdict>(const Candidate& candidate, const Progress* progress)> judge;
  /// Instead of `judge`: runs `partita minify --once --json`, for callers whose threads forbid in_child (a window).
  CaseProgram program;
  /// The judge may crash, hang or use up memory, or several judge at once, so each runs in a child process. Either all
  /// candidates are judged in children or none, because judging here may start threads, which a fork does not copy.
  bool in_child = false;
  ProcessLimits limits;
  /// Nodes of a failing candidate that are likely to fail alone; empty: nobody knows. Not asked in a child.
  std::function<std::vector<std::string>(const Candidate& candidate, const Progress* progress)> suspects;
  /// How the interpreter evaluates calls of operators that it does not know; unset: it refuses them.
  CallUnknown call_unknown;
  /// Calls that must become inputs before the oracle can answer: random ones, for accuracy.
  std::function<bool(const Node&)> cut_first;
};

/// Fails when the graph cannot be compiled or run.
Oracle crash_oracle(const std::string& name, const CompileFn& compile);
/// Fails when torch_difference() finds an output wrong, given the compiled, the interpreted and the double-precision
/// value. If the graph cannot be compiled or run, that is another failure.
Oracle accuracy_oracle(const std::string& name, const CompileFn& compile, const SameOptions& options, int threads,
                       const CallUnknown& call_unknown = {});
/// Fails when the exit code of the shell command is 0 or, with `pattern`, when its output matches the regular
/// expression.
/// {} stands for the candidate's FX text, a file in a folder as of a CaseProgram.
Result<Oracle> command_oracle(const std::string& command, const std::string& pattern, const ProcessLimits& limits);

/// A timeout or a signal is a ProcessEnd, not an error. Fault::Cancelled.
Result<ProcessEnd> run_on_case(const CaseProgram& program, const Candidate& candidate, const ProcessLimits& limits,
                               const Progress* progress);

/// Does the error say that the process which was to judge came to its end from elsewhere? judge() asks again then, and
/// gives such an error only when all of several tries were lost.
bool is_lost(const Diagnostic& error);
/// What a program prints that was to judge a candidate and has no verdict, for the one that started it.
std::string no_verdict_text(const Diagnostic& error);

struct Judgement {
  Result<Verdict> verdict;  ///< an error if there is no verdict
  double seconds = 0;
};
/// One judgement per candidate; `jobs` at a time if the oracle judges in children or by a program.
std::vector<Judgement> judge(const Oracle& oracle, std::span<const Candidate> candidates, int jobs,
                             const Progress* progress);
/// Of one candidate.
Result<Verdict> judge(const Oracle& oracle, const Candidate& candidate, const Progress* progress);

}  // namespace partita::minify
