// Oracles for crashes, accuracy and a shell command. They are asked in this process, in forked children that answer
// with a line of text, or by a program that gets the case in a folder.
#include "core/minify/oracle.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <numeric>
#include <regex>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/descriptor.h"
#include "core/base/scratch.h"
#include "core/base/text.h"
#include "core/base/whereabouts.h"
#include "core/compare/check_passes.h"
#include "core/compare/per_node.h"
#include "core/interp/interpreter.h"
#include "core/minify/repro.h"

namespace partita::minify {
namespace {

/// The error of a judgement whose process was killed, and the failure that such an end looks like.
constexpr const char* lost_process = "minify.lost";
constexpr const char* killed = "signal 9";

/// The first line of an exception, without what changes when the graph gets smaller: words with numbers, names and
/// paths become "*".
std::string without_numbers(const std::string& text) {
  constexpr std::size_t longest = 200;
  std::string out;
  std::istringstream words(text.substr(0, longest));
  for (std::string word; words >> word;) {
    const bool changes = word.find_first_of("0123456789/'\"`") != word.npos;
    if (changes && out.ends_with("*")) continue;
    out += (out.empty() ? "" : " ") + (changes ? "*" : word);
  }
  return out;
}

/// The words of death() in core/base/whereabouts.h, "cpu ended: signal 11 (Segmentation fault) while ...", as a
/// failure of a child has them.
std::string what_of_death(const Diagnostic& error) {
  constexpr std::string_view ended = " ended: ", exited = "exit code ";
  const std::size_t at = error.message.find(ended);
  const std::string how = at == error.message.npos ? std::string() : error.message.substr(at + ended.size());
  if (how.starts_with("still running")) return "timeout";
  if (how.starts_with("out of memory")) return "out of memory";
  std::string what = how.substr(0, how.find_first_of("(:,; ", how.find_first_of("0123456789")));
  if (what.starts_with(exited)) what.erase(std::string_view("exit ").size(), std::string_view("code ").size());
  return what.empty() ? "error " + error.code : what;
}

std::string what_of(const Diagnostic& error) {
  if (is_death(error)) return what_of_death(error);
  std::string what = "error " + error.code;
  if (!error.code.starts_with("torch.exception")) return what;
  // Behind the column's name and the class, which the code has.
  const std::string_view behind = ": ";
  std::size_t at = error.message.find(behind);
  if (at != error.message.npos) at = error.message.find(behind, at + behind.size());
  return at == error.message.npos ? what : what + ": " + without_numbers(error.message.substr(at + behind.size()));
}

/// Makes a failure of the graph from a diagnostic.
Failure failure_of(const Diagnostic& error, const Graph& graph) {
  Failure f{.what = what_of(error), .op = {}, .node = error.where.node, .message = error.line()};
  if (const Node* node = f.node.empty() ? nullptr : graph.find(f.node)) f.op = node->op()->name;
  return f;
}

Result<std::vector<Value>> run_compiled(const CompileFn& compile, const Graph& graph,
                                        const std::vector<Value>& inputs) {
  TRY(const CompiledFn run, compile(graph));
  TRY(std::vector<Value> own, copy_values(inputs));
  return run(std::move(own));
}

/// A process that was killed from elsewhere judged nothing, and where PyTorch has no such backend or operator nothing
/// was run.
Result<Verdict> verdict_of(const Diagnostic& error, const Graph& graph) {
  Failure failure = failure_of(error, graph);
  if (failure.what == killed) return Diagnostic{Fault::Internal, lost_process, error.message};
  if (is_lost(error) || error.code == "torch.refused") return error;
  return Verdict(std::move(failure));
}

std::string dtype_name(const Value& v) {
  const auto* t = v.get<Tensor>();
  return t ? std::string(torch_name(t->dtype)) : "number";
}

Result<Verdict> judge_accuracy(const CompileFn& compile, const SameOptions& options, int threads,
                               const CallUnknown& call_unknown, const Candidate& candidate, const Progress* progress) {
  const Graph& graph = *candidate.graph;
  TRY(const std::vector<Value> inputs, candidate.inputs());
  const auto interpreted = [&](bool float64) -> Result<std::vector<Value>> {
    InterpOptions how;
    how.threads = threads;
    how.float64 = float64;
    how.check_inputs = false;
    how.call_unknown = call_unknown;
    how.progress = progress;
    TRY(std::vector<Value> own, copy_values(inputs));
    return interpret(graph, std::move(own), how);
  };
  const auto found = run_compiled(compile, graph, inputs);
  if (!found) return verdict_of(found.error(), graph);
  TRY(const std::vector<Value> expected, interpreted(false));
  if (expected.size() != found->size())
    return Verdict(
        Failure{"count", {}, {}, fmt::format("{} outputs expected, {} found", expected.size(), found->size())});
  // The run in double costs as much as the other two, so it is made only when the plain comparison says "differs".
  std::optional<std::vector<Value>> exact;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!torch_difference(expected[i], (*found)[i], Value(), options)) continue;
    if (!exact) {
      auto wide = interpreted(true);
      exact = wide ? *std::move(wide) : std::vector<Value>(expected.size());
    }
    if (const auto what = torch_difference(expected[i], (*found)[i], (*exact)[i], options)) {
      const Arg output = graph.outputs()[i];
      return Verdict(Failure{*what, dtype_name(expected[i]), output.node() ? output.node()->name() : "",
                             fmt::format("output {} differs: {}", i, *what)});
    }
  }
  return Verdict();
}

/// The error that no_verdict_text() wrote; nullopt when the text is no such error.
std::optional<Diagnostic> error_of_text(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("no verdict")) return std::nullopt;
  return Diagnostic{static_cast<Fault>(json.value("fault", static_cast<int>(Fault::Internal))),
                    json.value("no verdict", ""), json.value("message", "")};
}

std::string encode(const Result<Verdict>& verdict) {
  if (!verdict) return no_verdict_text(verdict.error());
  return *verdict ? "!" + to_json(**verdict) : "-";
}

Result<Verdict> decode(const std::string& answer) {
  if (answer == "-") return Verdict();
  if (answer.starts_with('!')) {
    TRY(Failure f, failure_from_json(answer.substr(1)));
    return Verdict(std::move(f));
  }
  if (auto error = error_of_text(answer)) return *std::move(error);
  return Diagnostic{Fault::Internal, lost_process, "the child process gave no answer"};
}

/// Of a child or a program that gave no answer.
Result<Verdict> verdict_without_answer(const ProcessEnd& end) {
  std::string message = last_line(end.errors);
  if (!end.at.empty()) message += (message.empty() ? "while " : "; while ") + end.at;
  switch (end.how) {
    case ProcessEnd::Exited:
    case ProcessEnd::NotFound:
      return Verdict(Failure{fmt::format("exit {}", end.code), {}, end.node, message});
    case ProcessEnd::Signalled:
      return Verdict(Failure{fmt::format("signal {}", end.code), {}, end.node, message});
    case ProcessEnd::TimedOut:
      return Verdict(
          Failure{"timeout",
                  {},
                  end.node,
                  fmt::format("no answer within {:.3g} s{}{}", end.seconds, end.at.empty() ? "" : "; while ", end.at)});
    case ProcessEnd::OutOfMemory:
      if (end.code == SIGKILL) return Diagnostic{Fault::Internal, lost_process, "it was killed"};
      return Verdict(Failure{"out of memory", {}, end.node, message});
    case ProcessEnd::Cancelled:
      break;
  }
  return stopped_on_request();
}

/// A child's answer ends with a newline; without one it ended before.
Result<Verdict> verdict_of_child(const ProcessEnd& end) {
  if (!end.succeeded() || !end.output.ends_with('\n')) return verdict_without_answer(end);
  return decode(end.output.substr(0, end.output.size() - 1));
}

/// Matches line by line, because std::regex recurses for every character.
bool any_line_matches(const std::string& text, const std::regex& expression) {
  constexpr std::size_t longest = 4096;
  return std::ranges::any_of(lines_of(text), [&](std::string_view line) {
    return std::regex_search(line.begin(), line.begin() + std::ssize(line.substr(0, longest)), expression);
  });
}

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

/// Runs the program on each candidate, `jobs` at a time. A candidate that has no case is an error of its own.
std::vector<Result<ProcessEnd>> run_on_cases(const CaseProgram& program, std::span<const Candidate> candidates,
                                             int jobs, const ProcessLimits& limits, const Progress* progress) {
  std::vector<ScratchFolder> folders;
  std::vector<ProcessWork> works;
  std::vector<std::size_t> asked;
  std::vector<Result<ProcessEnd>> out;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    auto folder = ScratchFolder::make("minify");
    const Status written = folder ? write_case(candidates[i], folder->path()) : Status(folder.error());
    auto work = written ? program(folder->path()) : Result<ProcessWork>(written.error());
    out.push_back(work ? Result<ProcessEnd>(ProcessEnd()) : Result<ProcessEnd>(work.error()));
    if (!work) continue;
    asked.push_back(i);
    work->errors_in_output = true;
    works.push_back(*std::move(work));
    folders.push_back(*std::move(folder));
  }
  auto ends = run_processes(works, jobs, limits, progress);
  for (std::size_t k = 0; k < asked.size(); ++k) {
    Result<ProcessEnd> end = ends ? Result<ProcessEnd>(std::move((*ends)[k])) : Result<ProcessEnd>(ends.error());
    if (end && end->how == ProcessEnd::Cancelled) end = stopped_on_request();
    out[asked[k]] = std::move(end);
  }
  return out;
}

Result<Verdict> verdict_of_program(const Result<ProcessEnd>& end) {
  if (!end) return end.error();
  if (auto error = error_of_text(last_line(end->output))) return *std::move(error);
  if (end->how != ProcessEnd::Exited || end->code > 1) return verdict_without_answer(*end);
  if (end->code == 0) return Verdict();
  TRY(Failure failure, failure_from_json(last_line(end->output)));
  return Verdict(std::move(failure));
}

std::vector<Judgement> judge_by_program(const Oracle& oracle, std::span<const Candidate> candidates, int jobs,
                                        const Progress* progress) {
  std::vector<Judgement> out;
  for (const auto& end : run_on_cases(oracle.program, candidates, jobs, oracle.limits, progress))
    out.push_back({verdict_of_program(end), end ? end->seconds : 0});
  return out;
}

}  // namespace

Result<ProcessEnd> run_on_case(const CaseProgram& program, const Candidate& candidate, const ProcessLimits& limits,
                               const Progress* progress) {
  return std::move(run_on_cases(program, {&candidate, 1}, 1, limits, progress).front());
}

Oracle crash_oracle(const std::string& name, const CompileFn& compile) {
  Oracle o;
  o.question = "crash:" + name;
  o.in_child = true;
  o.judge = [compile](const Candidate& candidate, const Progress*) -> Result<Verdict> {
    TRY(const std::vector<Value> inputs, candidate.inputs());
    const auto ran = run_compiled(compile, *candidate.graph, inputs);
    return ran ? Verdict() : verdict_of(ran.error(), *candidate.graph);
  };
  return o;
}

Oracle accuracy_oracle(const std::string& name, const CompileFn& compile, const SameOptions& options, int threads,
                       const CallUnknown& call_unknown) {
  Oracle o;
  o.question = fmt::format("accuracy:{} tolerance {}", name, options.tolerance);
  o.cut_first = draws_random;
  o.call_unknown = call_unknown;
  o.judge = [compile, options, threads, call_unknown](const Candidate& candidate, const Progress* progress) {
    return judge_accuracy(compile, options, threads, call_unknown, candidate, progress);
  };
  return o;
}

Result<Oracle> command_oracle(const std::string& command, const std::string& pattern, const ProcessLimits& limits) {
  std::optional<std::regex> expression;
  try {
    if (!pattern.empty()) expression.emplace(pattern);
  } catch (const std::regex_error& e) {
    return input_error("minify.pattern", fmt::format("{} is not a regular expression ({})", pattern, e.what()));
  }
  if (command.find("{}") == std::string::npos)
    return input_error("minify.command",
                       "the command names no {}, which stands for the file to try, as in "
                       "--command 'python test.py {}'");
  Oracle o;
  o.question = fmt::format("command {} matches {}", command, pattern);
  o.limits = {limits.seconds + 5, 0};  // limit for a child that waits for the command; the command has its own limit
  const CaseProgram shell = [command](const std::string& folder) -> Result<ProcessWork> {
    return ProcessWork{.words = {"/bin/sh", "-c", replaced(command, "{}", folder + "/graph.py")}, .body = {}};
  };
  o.judge = [shell, expression, limits](const Candidate& candidate, const Progress* progress) -> Result<Verdict> {
    TRY(const ProcessEnd end, run_on_case(shell, candidate, limits, progress));
    const bool fails = expression ? any_line_matches(end.output, *expression) : end.succeeded();
    return fails ? Verdict(Failure{"command", {}, {}, last_line(end.output)}) : Verdict();
  };
  return o;
}

std::string no_verdict_text(const Diagnostic& error) {
  const nlohmann::json json = {
      {"no verdict", error.code}, {"fault", static_cast<int>(error.fault)}, {"message", error.message}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool is_lost(const Diagnostic& error) {
  constexpr std::string_view codes[] = {lost_process, "torch.start", "process.start", "process.message"};
  return std::ranges::find(codes, error.code) != std::end(codes);
}

namespace {

/// Each candidate is asked about once.
std::vector<Judgement> judge_once(const Oracle& oracle, std::span<const Candidate> candidates, int jobs,
                                  const Progress* progress) {
  if (oracle.program) return judge_by_program(oracle, candidates, jobs, progress);
  std::vector<Judgement> out;
  if (!oracle.in_child) {
    for (const Candidate& c : candidates) {
      const auto begun = std::chrono::steady_clock::now();
      auto verdict = oracle.judge(c, progress);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
      out.push_back({std::move(verdict), took.count()});
    }
    return out;
  }
  // Compute the values once here, instead of in each child.
  std::vector<ProcessWork> works;
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& c = candidates[i];
    const auto inputs = c.inputs();
    out.push_back({inputs ? Result<Verdict>(Verdict()) : Result<Verdict>(inputs.error())});
    if (!inputs) continue;
    asked.push_back(i);
    works.push_back({.words = {}, .body = [&oracle, &c, progress](int out) {
                       const std::string text = encode(oracle.judge(c, progress)) + "\n";
                       write_all(out, text.data(), text.size());
                     }});
  }
  const auto ends = run_processes(works, jobs, oracle.limits, progress);
  for (std::size_t k = 0; k < asked.size(); ++k)
    out[asked[k]] = ends ? Judgement{verdict_of_child((*ends)[k]), (*ends)[k].seconds} : Judgement{ends.error()};
  return out;
}

/// What is lost each time is the candidate's doing, unless there is no process at all.
Result<Verdict> given_up(Result<Verdict> lost) {
  const Diagnostic& error = lost.error();
  if (error.code == lost_process) return Verdict(Failure{"out of memory", {}, {}, error.message});
  if (error.code == "process.message") return Verdict(Failure{"error " + error.code, {}, {}, error.message});
  return lost;
}

}  // namespace

std::vector<Judgement> judge(const Oracle& oracle, std::span<const Candidate> candidates, int jobs,
                             const Progress* progress) {
  constexpr int most_askings = 5;
  std::vector<Judgement> out(candidates.size(), Judgement{Verdict()});
  std::vector<std::size_t> open(candidates.size());
  std::iota(open.begin(), open.end(), std::size_t{0});
  for (int asking = 1; !open.empty(); ++asking) {
    const Status ready = oracle.ready ? oracle.ready() : Status();
    std::vector<Candidate> asked;
    for (const std::size_t i : open) asked.push_back(candidates[i]);
    std::vector<Judgement> judged = ready ? judge_once(oracle, asked, jobs, progress)
                                          : std::vector<Judgement>(asked.size(), Judgement{ready.error()});
    std::vector<std::size_t> lost;
    for (std::size_t k = 0; k < open.size(); ++k) {
      Judgement& judgement = out[open[k]] = std::move(judged[k]);
      if (judgement.verdict || !is_lost(judgement.verdict.error())) continue;
      if (asking < most_askings)
        lost.push_back(open[k]);
      else
        judgement.verdict = given_up(std::move(judgement.verdict));
    }
    open = std::move(lost);
  }
  return out;
}

Result<Verdict> judge(const Oracle& oracle, const Candidate& candidate, const Progress* progress) {
  return std::move(judge(oracle, {&candidate, 1}, 1, progress).front().verdict);
}

std::string to_json(const Failure& f) {
  const nlohmann::ordered_json json = {{"what", f.what}, {"op", f.op}, {"node", f.node}, {"message", f.message}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Failure> failure_from_json(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return input_error("minify.answer", "a remembered answer is not readable: " + text);
  return Failure{json.value("what", ""), json.value("op", ""), json.value("node", ""), json.value("message", "")};
}

}  // namespace partita::minify
