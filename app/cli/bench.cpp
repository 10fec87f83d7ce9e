#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/cli/command.h"
#include "app/config_options.h"
#include "app/run_artefact.h"
#include "core/base/memory.h"
#include "core/base/scratch.h"
#include "core/base/shell_word.h"
#include "core/store/code_store.h"

namespace partita::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  RunRequest request;
  std::string backend{default_compiler().name};
  double seconds = 2;
  bool compile_only = false;
};

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Prepared {
  TrainedFunction function;
  double compile_ms = 0;  ///< from the loaded archive to the end of the first step
};

Result<Prepared> prepare(const Options& o) {
  TRY(const Backend* backend, find_backend(o.backend));
  TRY(const Loaded loaded, load(o.request.path));
  TRY(const Artefact* artefact, loaded.pick(o.request.graph));
  TRY(const TensorFile io, read_io(o.request));
  const auto start = Clock::now();
  const auto store = std::make_shared<CodeStore>();
  const CompileFn compile = backend->make(
      {.fixed_parameters = !o.request.train, .generator = std::make_shared<Generator>(o.request.seed), .store = store});
  TRY(TrainedFunction function, TrainedFunction::make(*artefact, io, run_options(o.request, compile)));
  TRY(const TensorFile first, function.step());
  return Prepared{std::move(function), since(start)};
}

/// Runs for `seconds`, at least five times.
Result<double> median_ms(TrainedFunction& function, double seconds) {
  for (int i = 0; i < 3; ++i) {
    TRY(const TensorFile ignored, function.step());
  }
  std::vector<double> times;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  while (Clock::now() < end || times.size() < 5) {
    const auto start = Clock::now();
    TRY(const TensorFile ignored, function.step());
    times.push_back(since(start));
  }
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

/// The most bytes of tensors that a step holds beside what it began with.
Result<std::size_t> peak_bytes(TrainedFunction& function) {
  const std::size_t before = held_bytes();
  reset_most_held();
  TRY(const TensorFile ignored, function.step());
  return most_held_bytes() - before;
}

/// What the flow's stages took, in their order; their passes included, the compiler's own work not.
nlohmann::ordered_json stage_times(const AotGraphs& graphs) {
  nlohmann::ordered_json times = nlohmann::ordered_json::object();
  for (const StageRun& ran : graphs.stages) times[name_of(ran.stage)] = ran.milliseconds;
  return times;
}

/// compile_ms of a new process for which the store is filled.
Result<double> warm_compile_ms(const Options& o) {
  std::error_code failed;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", failed).string();
  std::string command =
      fmt::format("{} bench {} --compile-only --backend {}{}", shell_word(self), shell_word(o.request.path),
                  shell_word(o.backend), config_words(config(), ConfigPart::Given));
  if (!o.request.inputs.empty()) command += " --inputs " + shell_word(o.request.inputs);
  if (!o.request.graph.empty()) command += " --graph " + shell_word(o.request.graph);
  if (o.request.random_weights) command += fmt::format(" --random-weights {}", *o.request.random_weights);
  if (o.request.train) command += " --train";
  FILE* pipe = failed ? nullptr : popen(command.c_str(), "r");
  std::string text;
  char buffer[256];
  while (pipe && fgets(buffer, sizeof buffer, pipe)) text += buffer;
  const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
  if (!pipe || pclose(pipe) != 0 || !line.contains("compile_ms"))
    return Diagnostic{Fault::Internal, "bench.child", "the process that measures the warm compilation failed"};
  return line["compile_ms"].get<double>();
}

Result<int> run(const Options& o) {
  if (o.compile_only) {
    TRY(const Prepared p, prepare(o));
    fmt::print("{{\"compile_ms\": {:.3f}}}\n", p.compile_ms);
    return 0;
  }
  // An empty store in place of the user's.
  TRY(const ScratchFolder store, ScratchFolder::make("bench"));
  TRY(const Config isolated, patched_config({{"store", store.path()}}));
  const ConfigScope scope(isolated);
  TRY(Prepared p, prepare(o));
  TRY(const double median, median_ms(p.function, o.seconds));
  TRY(const std::size_t peak, peak_bytes(p.function));
  TRY(const double warm, warm_compile_ms(o));
  const nlohmann::ordered_json line = {{"compile_ms", p.compile_ms},
                                       {"warm_compile_ms", warm},
                                       {"median_ms", median},
                                       {"peak_bytes", peak},
                                       {"stages_ms", stage_times(*p.function.graphs())},
                                       {"config", config_json(config(), ConfigPart::Differs)}};
  fmt::print("{}\n", line.dump());
  return 0;
}

}  // namespace

extern const Command bench_command;
const Command bench_command = {
    "bench", "Measure compilation, cold and warm, and a step", [](CLI::App& app) -> Action {
      auto o = std::make_shared<Options>();
      add_run_options(app, o->request);
      app.add_option("--backend", o->backend, "as `run --backend`, in this process")->capture_default_str();
      app.add_option("--seconds", o->seconds, "how long to run")->check(CLI::Range(0.0, 3600.0))->capture_default_str();
      app.add_flag("--compile-only", o->compile_only, "compile with the store as it is, run once, print the time");
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli
