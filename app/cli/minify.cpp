#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "app/cli/command.h"
#include "app/config_options.h"
#include "app/run_options.h"
#include "app/standard_streams.h"
#include "app/tasks/graph_of_rank.h"
#include "app/tasks/locate.h"
#include "app/tasks/minify_question.h"
#include "app/tasks/rank_alone.h"
#include "app/tasks/run_artefact.h"
#include "core/minify/reduce_graph.h"
#include "core/minify/repro.h"
#include "core/minify/start.h"
#include "core/store/code_store.h"

namespace partita::cli {
namespace {

using minify::Candidate;

struct MinifyVerbOptions {
  MinifyCheck check;
  std::string path, graph, inputs, out;
  std::uint64_t seed = 0;
  OtherRanks ranks;
  bool resume = false, once = false, blame = false, json = false, cut_only = false;
};

/// What is minified, and the question: a graph that AOTAutograd split off is compiled as a part of a training step.
struct Asked {
  MinifyQuestion question;
  minify::Start start;
  std::string note = {};  ///< for people: whose graph it is
};

MinifyCheck check_of(const MinifyVerbOptions& o, ArtefactKind kind) {
  MinifyCheck check = o.check;
  check.train |= kind == ArtefactKind::Forward || kind == ArtefactKind::Backward;
  return check;
}

/// The first rank of a folder that fails without the others.
Result<Asked> ask_ranks(const MinifyVerbOptions& o) {
  TRY(const RankFolder folder, read_rank_folder(o.path, o.graph, o.inputs, nullptr));
  TRY(MinifyQuestion question, minify_question(check_of(o, folder.ranks.front().artefact.kind)));
  TRY(std::vector<minify::Start> starts, ranks_alone(folder, o.seed, question.functional(), nullptr));
  for (std::size_t rank = 0; rank < starts.size(); ++rank) {
    const minify::Start& start = starts[rank];
    TRY(const minify::Verdict verdict,
        minify::judge(question.oracle, minify::with_inputs(start.graph, start.inputs, 0), nullptr));
    if (verdict)
      return Asked{std::move(question), std::move(starts[rank]),
                   fmt::format("rank {} of {} fails with what the others send it; its collectives are inputs and "
                               "results of what is minified\n",
                               rank, starts.size())};
  }
  return Diagnostic{Fault::Differs, "minify.passes",
                    fmt::format("no rank of {} fails by itself with what the others send it ({}); compare --ranks "
                                "runs them together",
                                starts.size(), question.oracle.question),
                    Where{.graph = folder.kind}};
}

Result<Asked> ask(const MinifyVerbOptions& o) {
  if (o.ranks.kind == OtherRanks::Kind::All) return ask_ranks(o);
  TRY(const Loaded loaded, load(o.path));
  TRY(const Artefact artefact, pick_of_rank(loaded, o.graph));
  TRY(const TensorFile io, read_inputs(o.inputs));
  MinifyCheck check = check_of(o, artefact.kind);
  check.check = with_recorded_options(check.check, artefact);
  TRY(MinifyQuestion question, minify_question(check));
  TRY(minify::Start start, minify::make_start(artefact, io, o.seed, question.functional()));
  return Asked{std::move(question), std::move(start)};
}

void show_progress(const minify::Event& e) {
  std::fprintf(stderr, "\r%-24s %6zu of %zu calls, %zu tries (%.0f a second)   ", e.strategy.c_str(), e.calls,
               e.start_calls, e.tries, e.tries_per_second);
}

std::string as_text(const minify::MinifyResult& r, const minify::Culprit& culprit, const std::string& folder) {
  std::string text =
      fmt::format("{} of {} calls: {}\n{} tries in {:.2f} s ({:.0f} a second, {:.0f} nodes a second)", r.calls,
                  r.start_calls, r.failure.text(), r.tries, r.seconds, static_cast<double>(r.tries) / r.seconds,
                  static_cast<double>(r.nodes_tried) / r.seconds);
  if (r.recalled > 0) text += fmt::format(", {} known from before", r.recalled);
  text += "\n";
  if (!culprit.pass.empty()) text += fmt::format("pass: {}\n", culprit.pass);
  if (!culprit.kernel.empty()) text += fmt::format("kernel: {}\n", culprit.kernel);
  return text + fmt::format("{}", folder) + "\n";
}

/// Tries the graph as it is; 1 when it fails.
Result<int> try_once(const MinifyVerbOptions& o, const MinifyQuestion& q, const minify::Start& start) {
  const Candidate candidate = minify::with_inputs(start.graph, start.inputs, 0);
  const Result<minify::Verdict> judged = minify::judge(q.oracle, candidate, nullptr);
  const bool asked_by_program = o.json && (o.check.python_process >= 0 || (!judged && minify::is_lost(judged.error())));
  if (!judged && asked_by_program) {
    fmt::print("{}\n", minify::no_verdict_text(judged.error()));
    return judged.error().exit_code();
  }
  TRY(const minify::Verdict verdict, judged);
  if (verdict && o.blame) {
    TRY(const minify::Culprit culprit, find_culprit(q, candidate, *verdict));
    if (o.json)
      fmt::print("{}\n", to_json(culprit));
    else
      fmt::print("pass: {}\nkernel: {}\n{}", culprit.pass, culprit.kernel, culprit.detail);
    return 1;
  }
  if (o.json)
    fmt::print("{}\n", verdict ? to_json(*verdict) : "null");
  else
    fmt::print("{}\n", verdict ? fmt::format("fails: {}; {}", verdict->text(), verdict->message) : "does not fail");
  return verdict ? 1 : 0;
}

Result<int> run(const MinifyVerbOptions& o) {
  if (o.ranks.kind == OtherRanks::Kind::Fake)
    return unsupported("minify.ranks",
                       "minify takes all ranks of a folder (--ranks), whose values are real, and no stand-in for "
                       "them");
  const bool as_it_is = o.once || o.blame;
  if (o.out.empty() && !as_it_is) return input_error("cli.usage", "minify needs -o, the folder for what it finds");
  TRY(const Asked asked, ask(o));
  const auto& [q, start, note] = asked;
  fmt::print(o.json ? stderr : stdout, "{}", note);
  if (as_it_is) return try_once(o, q, start);

  const auto store = std::make_shared<CodeStore>();
  const std::string session = minify_session(start, q);
  if (!o.resume) store->forget_tries(session);
  minify::ReduceOptions how;
  how.jobs = q.jobs;
  how.threads = config().threads;
  how.simplify = !o.cut_only;
  how.memory = remembered_tries(store, session);
  const bool shows = !o.json && ::isatty(STDERR_FILENO);
  minify::SmallestSoFar so_far(o.out, q.name);
  how.taken = [&](const Candidate& candidate, const minify::Failure& failure) { so_far.take(candidate, failure); };
  how.event = [&](const minify::Event& e) {
    if (shows) show_progress(e);
    so_far.write_what_waits();
  };
  auto reduced = minify::reduce(start.graph, start.inputs, q.oracle, how);
  if (shows) std::fputs("\n", stderr);
  if (!reduced) return std::move(reduced).error();

  const Candidate smallest = minify::with_inputs(reduced->graph, reduced->inputs, 0);
  TRY(const minify::Culprit culprit, find_culprit(q, smallest, reduced->failure, reduced->hang_seconds));
  TRY_DO(write_repro(*reduced, o.out, repro_text(q, culprit)));
  const std::string report = minify_report(*reduced, culprit, o.out);
  store->add(CheckRow{remembered_path(o.path), start.id, "minify", false, report});
  fmt::print("{}", o.json ? report + "\n" : as_text(*reduced, culprit, o.out));
  return 0;
}

}  // namespace

extern const Command minify_command = {
    "minify", "Find the small part of a graph that fails", [](CLI::App& app) -> Action {
      auto o = std::make_shared<MinifyVerbOptions>();
      add_graph_options(app, o->path, o->graph)->required();
      add_ranks_option(app, o->ranks);
      app.add_option("--inputs", o->inputs, "safetensors file with input.0, input.1, ...; what it lacks is random");
      app.add_option("--check", o->check.check,
                     "crash:BACKEND: compiling or running fails; accuracy:BACKEND: an output is farther from a run in "
                     "double than the interpreter's allows; the backend is cpu when left out");
      app.add_option("--command", o->check.command,
                     "CMD {}: exit code 0 means that {}, a file with FX text, fails; beside it lie inputs.safetensors "
                     "and graph.input");
      app.add_option("--matches", o->check.matches, "with --command: it fails when a line of the output matches this");
      app.add_option("-o,--output", o->out, "folder for graph.py, repro.py, inputs.safetensors, graph.input, README.md")
          ->check(output_folder());
      app.add_option("--jobs", o->check.jobs, "tries at the same time, each in a process of its own")
          ->check(CLI::Range(1, 256))
          ->default_str("as many as there are processors; 1 with --command");
      app.add_flag("--resume", o->resume, "use the answers of earlier runs of the same question");
      app.add_flag("--once", o->once,
                   "only try the graph as it is: exit code 1 when it fails; with --json prints the failure, or null");
      app.add_flag("--blame", o->blame,
                   "only find which pass or kernel makes the graph as it is fail: exit code 1 when it does")
          ->excludes("--once");
      app.add_flag("--cut-only", o->cut_only, "leave sizes, dtypes, arguments and values as they are");
      app.add_option("--timeout", o->check.timeout, "seconds a try may take")
          ->check(CLI::PositiveNumber)
          ->capture_default_str();
      app.add_option("--memory-limit", o->check.memory_limit, "MiB a try may take; 0: no limit")->capture_default_str();
      app.add_option("--tolerance", o->check.tolerance, "of --check accuracy, absolute and relative")
          ->check(CLI::NonNegativeNumber)
          ->capture_default_str();
      app.add_option("--plant", o->check.plant,
                     "OP:wrong, OP:crash or OP:hang: compile this operator by a wrong rule, to see what is found");
      app.add_option("--python-process", o->check.python_process)->group("");  // a program's that starts this one
      app.add_option("--seed", o->seed, "for random inputs")->capture_default_str();
      add_config_option(app, "--threads", "threads");
      app.add_flag(
          "--train", o->check.train,
          "the graph is of a training step, as torch:inductor is told; of a log's forward and backward graphs it "
          "is known");
      app.add_flag("--json", o->json, "one JSON document");
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli
