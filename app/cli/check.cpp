#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "core/compare/op_cases.h"
#include "core/interp/interpreter.h"

namespace partita::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string path, backend = "debug";
  bool train = false, json = false;
  unsigned jobs = 0;
};

struct Totals {
  std::size_t passed = 0, rounding = 0, failed = 0, skipped = 0;  ///< rounding: of those passed
  std::map<std::string, std::size_t> refused;

  void count(const CaseResult& r) {
    if (r.outcome == Outcome::Passed) {
      ++passed;
      rounding += r.rounding;
    }
    if (r.outcome == Outcome::Failed) ++failed;
    if (r.outcome != Outcome::Skipped) return;
    ++skipped;
    ++refused[r.unsupported];
  }
};

Result<RunGraph> runner(const std::string& backend) {
  if (backend == "debug") return RunGraph();
  if (backend == "interp")
    return RunGraph([](const Graph& g, std::vector<Value> in) { return interpret(g, std::move(in)); });
  return unsupported("cli.backend", "check runs with --backend debug or interp, not " + backend);
}

/// The files in order, each worked on by whichever thread is free.
std::vector<Result<std::vector<CaseResult>>> check_all(const std::vector<std::string>& files,
                                                       const CaseOptions& options, unsigned jobs) {
  std::vector<Result<std::vector<CaseResult>>> results(files.size(), std::vector<CaseResult>{});
  std::atomic<std::size_t> next = 0;
  auto work = [&] {
    for (std::size_t i; (i = next++) < files.size();) results[i] = check_cases(files[i], options);
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < jobs; ++t) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  return results;
}

Result<int> check(const Options& options) {
  TRY(std::vector<std::string> files, find_case_files(options.path));
  TRY(RunGraph run, runner(options.backend));
  unsigned jobs = options.jobs ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
  // By graph kind: "graph", "pre_dispatch_graph", "symbolic_graph".
  std::map<std::string, Totals> kinds = {{"graph", {}}};
  Json failures = Json::array();
  for (auto& file : check_all(files, {run, options.train}, jobs)) {
    if (!file) return std::move(file).error();
    for (const CaseResult& r : *file) {
      kinds[r.kind].count(r);
      if (r.outcome != Outcome::Failed) continue;
      if (options.json)
        failures.push_back({{"file", r.file}, {"idx", r.index}, {"graph", r.kind}, {"message", r.message}});
      else
        std::printf("%s:%lld:%s: %s\n", r.file.c_str(), static_cast<long long>(r.index), r.kind.c_str(),
                    r.message.c_str());
    }
  }
  std::size_t failed = 0;
  Json document = {{"failures", failures}};
  for (const auto& [kind, totals] : kinds) {
    failed += totals.failed;
    document[kind] = {{"passed", totals.passed},
                      {"rounding", totals.rounding},
                      {"failed", totals.failed},
                      {"skipped", totals.skipped},
                      {"refused", totals.refused}};
    if (options.json) continue;
    for (const auto& [what, count] : totals.refused)
      std::printf("%s: skipped %zu: %s\n", kind.c_str(), count, what.c_str());
    if (totals.rounding > 0)
      std::printf("%s: %zu of those passed differ by rounding from gradients in single precision\n", kind.c_str(),
                  totals.rounding);
    std::printf("%s: %zu passed, %zu failed, %zu skipped\n", kind.c_str(), totals.passed, totals.failed,
                totals.skipped);
  }
  if (options.json) std::printf("%s\n", document.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  return failed ? 1 : 0;
}

Action add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("path", options->path, "Folder of operator cases, or one NAME.json")->required();
  app.add_option("--backend", options->backend, "debug (holds every node against its annotation) or interp")
      ->capture_default_str();
  app.add_flag("--train", options->train, "Differentiate too");
  app.add_flag("--json", options->json, "One JSON document");
  app.add_option("--jobs", options->jobs, "Threads; 0: one for each processor");
  return [options] { return check(*options); };
}

}  // namespace

extern const Command check_command;
const Command check_command = {"check", "Runs a folder of corpus cases and says which differ", add};

}  // namespace partita::cli
