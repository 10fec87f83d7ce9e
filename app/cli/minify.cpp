#include <cstdio>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/cli/command.h"
#include "app/code_store.h"
#include "app/minify_backend.h"
#include "app/run_artefact.h"
#include "core/base/hash.h"
#include "core/ir/print.h"
#include "core/minify/reduce.h"
#include "core/minify/repro.h"
#include "core/minify/start.h"

namespace partita::cli {
namespace {

using minify::Candidate;
using minify::Oracle;

struct Options {
  std::string path, graph, inputs, check, command, matches, out, plant;
  int jobs = 1, threads = 1;
  double timeout = 60, tolerance = 1e-3;
  std::size_t memory_limit = 0;  // MiB
  std::uint64_t seed = 0;
  bool resume = false, once = false, json = false, cut_only = false;
};

/// Which failure is looked for, and in what.
struct Question {
  std::string name;  ///< "accuracy:cpu", "command"
  const Backend* backend = nullptr;
  BackendOptions backend_options;
  std::function<Oracle(const CompileFn&)> oracle_of;  ///< unset for commands
  Oracle oracle;
};

Result<Question> parse_question(const Options& o) {
  Question q;
  const minify::ChildLimits limits{o.timeout, o.memory_limit << 20};
  if (!o.command.empty()) {
    q.name = "command";
    TRY(q.oracle, minify::command_oracle(o.command, o.matches, limits));
    q.oracle.in_child = o.jobs > 1;
    return q;
  }
  const std::size_t colon = o.check.find(':');
  const std::string kind = o.check.substr(0, colon);
  const std::string backend = colon == std::string::npos ? "cpu" : o.check.substr(colon + 1);
  if (kind != "crash" && kind != "accuracy")
    return input_error(
        "cli.usage",
        fmt::format("--check takes crash or accuracy, with a backend behind a colon, and got {}", o.check));
  TRY(q.backend, find_backend(backend));
  q.name = kind + ":" + backend;
  q.backend_options = {.threads = o.threads};
  std::optional<std::pair<const Op*, Plant>> plant;
  if (!o.plant.empty()) {
    TRY(plant, parse_plant(o.plant));
  }
  const SameOptions same{.tolerance = o.tolerance};
  q.oracle_of = [=, name = backend, threads = o.threads, jobs = o.jobs](const CompileFn& compile) {
    const CompileFn faulty = plant && compile ? planted(compile, plant->first, plant->second) : compile;
    Oracle oracle =
        kind == "crash" ? minify::crash_oracle(name, faulty) : minify::accuracy_oracle(name, faulty, same, threads);
    oracle.limits = limits;
    oracle.in_child |= jobs > 1;
    return oracle;
  };
  q.oracle = q.oracle_of(q.backend->make(q.backend_options));
  q.oracle.question += o.plant.empty() ? "" : " planted " + o.plant;
  return q;
}

Result<minify::Start> load_start(const Options& o, const Question& q) {
  TRY(const Loaded loaded, load(o.path));
  TRY(const Artefact* artefact, loaded.pick(o.graph));
  TensorFile io;
  if (!o.inputs.empty()) {
    TRY(io, read_inputs(o.inputs));
  }
  const bool functional = q.backend && !q.backend->takes_any_graph;
  return minify::make_start(*artefact, io, o.seed, functional);
}

std::string session_of(const minify::Start& start, const Question& q) {
  std::string text = fmt::format("{}\n{}\n{}", PARTITA_VERSION, q.oracle.question, print(*start.graph));
  for (const Value& v : start.inputs)
    if (const auto* t = v.get<Tensor>())
      if (const auto dense = t->contiguous())
        text += content_hash({reinterpret_cast<const char*>(dense->data()),
                              static_cast<std::size_t>(dense->numel()) * itemsize(dense->dtype)});
  return content_hash(text);
}

void show_progress(const minify::Event& e) {
  std::fprintf(stderr, "\r%-24s %6zu of %zu calls, %zu tries (%.0f a second)   ", e.strategy.c_str(), e.calls,
               e.start_calls, e.tries, e.tries_per_second);
}

nlohmann::ordered_json as_json(const minify::Reduced& r, const minify::Culprit& culprit, const std::string& folder) {
  nlohmann::ordered_json document = {
      {"folder", folder},
      {"failure", {{"what", r.failure.what}, {"op", r.failure.op}, {"message", r.failure.message}}},
      {"calls", {{"before", r.start_calls}, {"after", r.calls}}},
      {"tries", r.tries},
      {"recalled", r.recalled},
      {"nodes_tried", r.nodes_tried},
      {"seconds", r.seconds},
      {"tries_per_second", r.seconds > 0 ? static_cast<double>(r.tries) / r.seconds : 0},
      {"nodes_per_second", r.seconds > 0 ? static_cast<double>(r.nodes_tried) / r.seconds : 0},
      {"pass", culprit.pass},
      {"kernel", culprit.kernel},
      {"made_up", r.made_up},
      {"graph", print(*r.graph, {.annotations = true, .origins = false, .deletions = false})},
      {"strategies", nlohmann::ordered_json::array()}};
  for (const minify::StrategyRun& s : r.strategies)
    if (s.tries > 0)
      document["strategies"].push_back({{"name", s.name},
                                        {"tries", s.tries},
                                        {"taken", s.successes},
                                        {"calls_before", s.calls_before},
                                        {"calls_after", s.calls_after},
                                        {"seconds", s.seconds}});
  return document;
}

std::string as_text(const minify::Reduced& r, const minify::Culprit& culprit, const std::string& folder) {
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

/// The graph as it is: 1 when it fails.
Result<int> try_once(const Options& o, const Question& q, const minify::Start& start) {
  const Candidate candidate = minify::with_inputs(start.graph, start.inputs, 0);
  TRY(const minify::Verdict verdict, minify::judge(q.oracle, candidate, nullptr));
  if (o.json)
    fmt::print("{}\n", verdict ? to_json(*verdict) : "null");
  else
    fmt::print("{}\n", verdict ? fmt::format("fails: {}; {}", verdict->text(), verdict->message) : "does not fail");
  return verdict ? 1 : 0;
}

Result<int> run(const Options& o) {
  if (o.check.empty() == o.command.empty())
    return input_error("cli.usage", "minify takes --check crash|accuracy[:backend] or --command 'CMD {}'");
  if (o.out.empty() && !o.once) return input_error("cli.usage", "minify needs -o, the folder for what it finds");
  TRY(const Question q, parse_question(o));
  TRY(const minify::Start start, load_start(o, q));
  if (o.once) return try_once(o, q, start);

  const auto store = std::make_shared<CodeStore>();
  const std::string session = session_of(start, q);
  if (!o.resume) store->forget_tries(session);
  minify::ReduceOptions how;
  how.jobs = o.jobs;
  how.threads = o.threads;
  how.simplify = !o.cut_only;
  how.memory.recall = [store, session](std::uint64_t candidate) { return store->find_try(session, candidate); };
  how.memory.remember = [store, session](std::uint64_t candidate, const std::string& answer) {
    store->add_try(session, candidate, answer);
  };
  if (!o.json && ::isatty(STDERR_FILENO)) how.event = show_progress;
  auto reduced = minify::reduce(start.graph, start.inputs, q.oracle, how);
  if (how.event) std::fputs("\n", stderr);
  if (!reduced) return std::move(reduced).error();

  minify::Culprit culprit;
  const auto staged = q.backend ? staged_compiler(*q.backend, q.backend_options) : std::nullopt;
  if (staged) {
    const Candidate smallest = minify::with_inputs(reduced->graph, reduced->inputs, 0);
    TRY(culprit, find_culprit(*staged, q.oracle_of, smallest, reduced->failure, {.tolerance = o.tolerance}));
  }
  minify::ReproText text;
  text.check = q.name;
  text.version = "partita " PARTITA_VERSION;
  text.tolerance = o.tolerance;
  text.culprit = culprit;
  text.again = o.command.empty()
                   ? fmt::format("partita minify graph.py --inputs inputs.safetensors --check {}{} --once", q.name,
                                 o.plant.empty() ? "" : " --plant " + o.plant)
                   : o.command;
  TRY_DO(write_repro(*reduced, o.out, text));
  const nlohmann::ordered_json document = as_json(*reduced, culprit, o.out);
  // A child's last words need not be UTF-8.
  const std::string report = document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  store->add(CheckRow{o.path, start.id, "minify", false, report});
  fmt::print("{}", o.json ? report + "\n" : as_text(*reduced, culprit, o.out));
  return 0;
}

}  // namespace

extern const Command minify_command;
const Command minify_command = {
    "minify", "Find the small part of a graph that fails", [](CLI::App& app) -> Action {
      auto o = std::make_shared<Options>();
      app.add_option("path", o->path, "graph, archive, log or folder")->required();
      app.add_option("--graph", o->graph, "id of the graph, as `partita list` shows it");
      app.add_option("--inputs", o->inputs, "safetensors file with input.0, input.1, ...; what it lacks is made up");
      app.add_option("--check", o->check,
                     "crash:BACKEND: compiling or running fails; accuracy:BACKEND: an output is farther from a run in "
                     "double than the interpreter's allows; the backend is cpu when left out");
      app.add_option("--command", o->command,
                     "CMD {}: exit code 0 means that {}, a file with FX text, fails; beside it lie inputs.safetensors "
                     "and graph.input");
      app.add_option("--matches", o->matches, "with --command: it fails when a line of the output matches this");
      app.add_option("-o,--output", o->out,
                     "folder for graph.py, repro.py, inputs.safetensors, graph.input, README.md");
      app.add_option("--jobs", o->jobs, "tries at once, each in a process")
          ->check(CLI::Range(1, 256))
          ->capture_default_str();
      app.add_flag("--resume", o->resume, "go on where an earlier run of the same question was ended");
      app.add_flag("--once", o->once,
                   "only try the graph as it is: exit code 1 when it fails; with --json prints the failure, or null");
      app.add_flag("--cut-only", o->cut_only, "leave sizes, dtypes, arguments and values as they are");
      app.add_option("--timeout", o->timeout, "seconds a try may take")
          ->check(CLI::PositiveNumber)
          ->capture_default_str();
      app.add_option("--memory-limit", o->memory_limit, "MiB a try may take; 0: no limit")->capture_default_str();
      app.add_option("--tolerance", o->tolerance, "of accuracy, absolute and relative")
          ->check(CLI::NonNegativeNumber)
          ->capture_default_str();
      app.add_option("--plant", o->plant,
                     "OP:wrong, OP:crash or OP:hang: compile this operator by a wrong rule, to see what is found");
      app.add_option("--seed", o->seed, "of made up inputs")->capture_default_str();
      app.add_option("--threads", o->threads, "of a try")->check(CLI::Range(1, 1024))->capture_default_str();
      app.add_flag("--json", o->json, "one JSON document");
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli
