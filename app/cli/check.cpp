// The verb check: runs corpus cases in child processes and counts what passes, fails and is refused. What a case
// compares is in core/compare/op_cases.cpp and core/aot/aot_cases.cpp.
#include <cstdio>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/config_options.h"
#include "app/progress_line.h"
#include "app/tasks/config_values.h"
#include "app/tasks/run_artefact.h"
#include "codegen/backends.h"
#include "core/aot/aot_cases.h"
#include "core/aot/run_compiled.h"
#include "core/compare/op_cases.h"
#include "core/process/workers.h"

namespace partita::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CheckVerbOptions {
  std::string path, backend = "debug";
  bool train = false, json = false;
  unsigned jobs = 0;
  std::size_t every = 1;
};

struct Totals {
  std::size_t passed = 0, failed = 0, skipped = 0;
  std::size_t by_double = 0;  ///< of those that passed
  std::map<std::string, std::size_t> refused;

  void count(const CaseResult& r) {
    if (r.outcome == Outcome::Passed) ++passed;
    by_double += r.by_double;
    if (r.outcome == Outcome::Failed) ++failed;
    if (r.outcome != Outcome::Skipped) return;
    ++skipped;
    ++refused[r.unsupported];
  }
};

/// Runs the graphs of a case; unset for the debug interpreter, which check_cases calls itself.
Result<RunGraph> runner(const std::string& name) {
  TRY(const Backend* backend, find_backend(name));
  if (name == "debug") return RunGraph();
  TRY_DO(backend->start({}));  // cases are run by forks of this process
  const CompileFn compile = backend->make({});
  if (!backend->takes_any_graph())
    return RunGraph(
        [compile](const Graph& g, std::vector<Value> in) { return run_compiled(g, std::move(in), compile); });
  return RunGraph([compile](const Graph& g, std::vector<Value> in) -> Result<std::vector<Value>> {
    TRY(const CompiledFn run, compile(g));
    return run(std::move(in));
  });
}

/// Runs a whole file as the verb `run` does.
Result<RunFile> file_runner(const std::string& name) {
  TRY(const Backend* backend, find_backend(name));
  return RunFile([backend](const Artefact& artefact, const TensorFile& io, bool train) {
    RunRequest request;
    request.train = train;
    return run_artefact(artefact, io, request, *backend, nullptr);
  });
}

Json case_json(const CaseResult& r, bool done) {
  return {{"file", r.file},       {"kind", r.kind},           {"index", r.index},         {"outcome", r.outcome},
          {"message", r.message}, {"refused", r.unsupported}, {"by_double", r.by_double}, {"done", done}};
}

/// The results of a file so far.
struct FileResults {
  std::vector<CaseResult> cases;
  CaseResult running;  ///< the graph that runs now
  std::string error;   ///< why the file could not be read as cases
};

/// Runs every graph of every file in child processes, so that a crash fails its own case only.
Result<std::vector<FileResults>> check_all(const std::vector<std::string>& files, const CaseOptions& options,
                                           const RunFile& run_file, const RunFile& run_in_double, unsigned jobs) {
  std::vector<FileResults> results(files.size());
  ProgressLine line;
  std::size_t done = 0;
  Workers workers;
  workers.items = files.size();
  workers.jobs = jobs;
  workers.work = [&](std::size_t file, std::size_t from, const Workers::Send& send) {
    auto tell = [&](const Json& j) { send(j.dump(-1, ' ', false, Json::error_handler_t::replace)); };
    if (is_aot_case(files[file])) {
      if (from == 0) {
        CaseResult started;
        started.file = files[file];
        started.kind = "aot";
        tell(case_json(started, false));
        tell(case_json(check_aot_case(files[file], options.train, run_file, run_in_double), true));
      }
      for (const CaseResult& r : check_aot_graphs(files[file])) tell(case_json(r, true));
      return;
    }
    CaseOptions reporting = options;
    reporting.skip = from;
    reporting.starting = [&](const CaseResult& r) { tell(case_json(r, false)); };
    reporting.finished = [&](const CaseResult& r) { tell(case_json(r, true)); };
    if (auto checked = check_cases(files[file], reporting); !checked) tell({{"error", checked.error().line()}});
  };
  workers.receive = [&](std::size_t file, std::string_view message) {
    const Json j = Json::parse(message);
    FileResults& f = results[file];
    if (j.contains("error")) {
      f.error = j["error"];
      return;
    }
    CaseResult r;
    r.file = j["file"];
    r.kind = j["kind"];
    r.index = j["index"];
    r.outcome = j["outcome"];
    r.message = j["message"];
    r.unsupported = j["refused"];
    r.by_double = j["by_double"];
    if (!j["done"]) {
      f.running = std::move(r);
      return;
    }
    line.progress().at(-1, fmt::format("{} cases, {}", ++done, files[file]));
    f.cases.push_back(std::move(r));
  };
  workers.died = [&](std::size_t file, const std::string& how) -> std::optional<std::size_t> {
    FileResults& f = results[file];
    if (f.running.kind.empty()) {
      f.error = files[file] + ": " + how;
      return std::nullopt;
    }
    f.running.outcome = Outcome::Failed;
    f.running.message = "crashed: " + how;
    f.cases.push_back(f.running);
    // The second step of a case of AOTAutograd is all of its graphs.
    if (is_aot_case(files[file]) && f.cases.size() > 1) return std::nullopt;
    return f.cases.size();
  };
  TRY_DO(run_workers(workers));
  return results;
}

Result<int> check(const CheckVerbOptions& options) {
  TRY(std::vector<std::string> files, find_case_files(options.path));
  TRY(RunGraph run, runner(options.backend));
  TRY(const RunFile run_file, file_runner(options.backend));
  TRY(const RunFile run_in_double, file_runner("f64"));
  unsigned jobs = options.jobs ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
  // By graph kind: "graph", "pre_dispatch_graph", "symbolic_graph", "aot".
  std::map<std::string, Totals> kinds = {{"graph", {}}};
  Totals all;
  Json failures = Json::array(), by_double = Json::array(), skipped = Json::array();
  TRY(const std::vector<FileResults> results,
      check_all(files, {.run = run, .train = options.train, .every = options.every}, run_file, run_in_double, jobs));
  for (const FileResults& file : results) {
    if (!file.error.empty()) return input_error("check.file", file.error);
    for (const CaseResult& r : file.cases) {
      kinds[r.kind].count(r);
      all.count(r);
      Json row = {{"file", r.file}, {"idx", r.index}, {"graph", r.kind}};
      if (r.by_double) by_double.push_back(row);
      if (r.outcome == Outcome::Passed) continue;
      row["message"] = r.message;
      (r.outcome == Outcome::Failed ? failures : skipped).push_back(row);
      if (r.outcome == Outcome::Failed && !options.json)
        std::printf("%s:%lld:%s: %s\n", r.file.c_str(), static_cast<long long>(r.index), r.kind.c_str(),
                    r.message.c_str());
    }
  }
  Json document = {{"passed", all.passed},
                   {"failed", all.failed},
                   {"skipped", all.skipped},
                   {"failures", failures},
                   {"by_double", by_double},
                   {"skips", skipped},
                   {"config", config_json(config(), ConfigPart::Differs)}};
  for (const auto& [kind, totals] : kinds) {
    document[kind] = {{"passed", totals.passed},
                      {"by_double", totals.by_double},
                      {"failed", totals.failed},
                      {"skipped", totals.skipped},
                      {"refused", totals.refused}};
    if (options.json) continue;
    for (const auto& [what, count] : totals.refused)
      std::printf("%s: skipped %zu: %s\n", kind.c_str(), count, what.c_str());
    std::printf("%s: %zu passed (%zu by the run in double), %zu failed, %zu skipped\n", kind.c_str(), totals.passed,
                totals.by_double, totals.failed, totals.skipped);
  }
  if (options.json)
    std::printf("%s\n", document.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  else
    std::printf("%zu outside the tolerance and right by the run in double\n%zu passed, %zu failed, %zu skipped\n",
                all.by_double, all.passed, all.failed, all.skipped);
  return all.failed ? 1 : 0;
}

Action add_check(CLI::App& app) {
  auto options = std::make_shared<CheckVerbOptions>();
  app.add_option("path", options->path, "Folder of operator or AOTAutograd cases, or one case file")->required();
  app.add_option("--backend", options->backend,
                 "What runs the graphs: debug also compares every node with its annotation")
      ->capture_default_str();
  app.add_flag("--train", options->train, "Run the backward too, and compare gradients");
  app.add_flag("--json", options->json, "One JSON document");
  app.add_option("--jobs", options->jobs, "Processes; 0: one for each processor");
  app.add_option("--every", options->every, "Run the first of so many cases of each file, of the next so many, ...")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  return [options] { return check(*options); };
}

}  // namespace

extern const Command check_command = {"check", "Runs a folder of corpus cases and says which differ", add_check};

}  // namespace partita::cli
