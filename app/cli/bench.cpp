#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/cli/command.h"
#include "app/config_options.h"
#include "app/run_options.h"
#include "app/tasks/config_values.h"
#include "app/tasks/graph_of_rank.h"
#include "app/tasks/run_artefact.h"
#include "codegen/cuda/driver.h"
#include "core/base/memory.h"
#include "core/base/scratch.h"
#include "core/process/run.h"
#include "core/store/code_store.h"

namespace partita::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchVerbOptions {
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
  double compile_ms = 0;     ///< from the loaded archive to before the first step
  double first_step_ms = 0;  ///< compiles too what waits for sizes that only a run tells
  std::shared_ptr<StageTimes> compiler;
  std::shared_ptr<nlohmann::ordered_json> sizes;  ///< each compilation of a graph with symbolic sizes, and why
  TensorFile io;                                  ///< as it was read: what is laid out otherwise was copied
  std::size_t input_bytes = 0;  ///< that the process holds beside what a step needs: inputs and weights
};

Result<Prepared> prepare(const BenchVerbOptions& o) {
  TRY(const Backend* backend, find_backend(o.backend));
  TRY(const Loaded loaded, load(o.request.path));
  TRY(const Artefact artefact, pick_of_rank(loaded, o.request.graph, o.request.ranks.size));
  TRY(TensorFile io, read_io(o.request, artefact));
  // What a step does not read goes before it, and must not count as held beside it.
  for (const auto& [key, tensor] : stored_results(io, true).tensors) io.tensors.erase(key);
  const std::size_t held = held_bytes();
  const auto start = Clock::now();
  const auto store = std::make_shared<CodeStore>();
  const auto times = std::make_shared<StageTimes>();
  const auto sizes = std::make_shared<nlohmann::ordered_json>(nlohmann::ordered_json::array());
  const auto on_sizes = [sizes](const SizeCompilation& c) { sizes->push_back(nlohmann::ordered_json::parse(json(c))); };
  TRY(const std::shared_ptr<Communicator> communicator, communicator_of(o.request));
  const BackendOptions how{.fixed_parameters = !o.request.train,
                           .generator = std::make_shared<Generator>(o.request.seed),
                           .communicator = communicator,
                           .store = store,
                           .on_sizes = on_sizes,
                           .times = times};
  RunOptions options = run_options(o.request, backend->make(how));
  options.cache = backend->cache(how);
  adapt_options(*backend, options.aot);
  options.place = backend->place;
  TRY(TrainedFunction function, TrainedFunction::make(artefact, io, options));
  const double compile_ms = since(start);
  const auto first = Clock::now();
  TRY(const TensorFile result, function.step());
  const std::size_t inputs = held + function.input_bytes();
  return Prepared{std::move(function), compile_ms, since(first), times, sizes, std::move(io), inputs};
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

/// The most bytes of tensors that a step holds beside inputs and weights. Compiled code keeps memory from step to step,
/// which counts.
Result<std::size_t> peak_bytes(Prepared& p) {
  reset_most_held();
  TRY(const TensorFile ignored, p.function.step());
  return most_held_bytes() - std::min(most_held_bytes(), p.input_bytes);
}

/// What the flow's stages took, in their order, their passes included, and then the compiler's.
nlohmann::ordered_json stage_times(const Prepared& p) {
  nlohmann::ordered_json times = nlohmann::ordered_json::object();
  if (const auto graphs = p.function.graphs())
    for (const StageRun& ran : graphs->stages) times[row_of(ran.stage).name] = ran.milliseconds;
  for (const auto& [stage, milliseconds] : p.compiler->all()) times[stage] = milliseconds;
  return times;
}

nlohmann::ordered_json compile_times(const Prepared& p) {
  return {{"compile_ms", p.compile_ms},
          {"first_step_ms", p.first_step_ms},
          {"stages_ms", stage_times(p)},
          {"cache", cache_log().counts()}};
}

/// compile_times() of a new process for which the store is filled.
Result<nlohmann::ordered_json> warm_times(const BenchVerbOptions& o) {
  std::error_code failed;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", failed).string();
  if (failed) return input_error("bench.child", "/proc/self/exe cannot be read: " + failed.message());
  std::vector<std::string> words = {self, "bench", o.request.path, "--compile-only", "--backend", o.backend};
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  if (!o.request.inputs.empty()) add({"--inputs", o.request.inputs});
  if (!o.request.graph.empty()) add({"--graph", o.request.graph});
  if (o.request.random_weights) add({"--random-weights", std::to_string(*o.request.random_weights)});
  if (o.request.train) add({"--train"});
  if (const std::string stand_in = name_of_stand_in(o.request.ranks); !stand_in.empty()) add({"--ranks", stand_in});
  TRY(const std::string text, ask_program(with_configuration(std::move(words))));
  nlohmann::ordered_json line = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!line.contains("compile_ms"))
    return Diagnostic{Fault::Internal, "bench.child", "the process that measures the warm compilation failed"};
  return line;
}

Result<int> run(const BenchVerbOptions& o) {
  if (o.compile_only) {
    TRY(const Prepared p, prepare(o));
    fmt::print("{}\n", compile_times(p).dump());
    return 0;
  }
  // An empty store in place of the user's.
  TRY(const ScratchFolder store, ScratchFolder::make("bench"));
  TRY(const Config isolated, patched_config({{"store", store.path()}, {"team_cache", ""}}));
  const ConfigScope scope(isolated);
  TRY(Prepared p, prepare(o));
  TRY(const double median, median_ms(p.function, o.seconds));
  TRY(const std::size_t peak, peak_bytes(p));
  const nlohmann::ordered_json cold = compile_times(p);
  TRY(const nlohmann::ordered_json warm, warm_times(o));
  const codegen::CudaGraphCounts graphs = codegen::cuda_graph_counts();
  nlohmann::ordered_json line = {
      {"compile_ms", p.compile_ms},
      {"warm_compile_ms", warm["compile_ms"]},
      {"first_step_ms", p.first_step_ms},
      {"warm_first_step_ms", warm["first_step_ms"]},
      {"median_ms", median},
      {"peak_bytes", peak},
      {"stages_ms", cold["stages_ms"]},
      {"warm_stages_ms", warm["stages_ms"]},
      {"cache", cold["cache"]},
      {"warm_cache", warm["cache"]},
      {"size_compilations", *p.sizes},
      {"cuda_graphs", {{"recorded", graphs.recorded}, {"replayed", graphs.replayed}, {"skipped", graphs.skipped}}},
      {"config", config_json(config(), ConfigPart::Differs)}};
  if (const std::string stand_in = name_of_stand_in(o.request.ranks); !stand_in.empty()) line["ranks"] = stand_in;
  fmt::print("{}\n", line.dump());
  return 0;
}

}  // namespace

extern const Command bench_command = {
    "bench", "Measure compilation, cold and warm, and a step", [](CLI::App& app) -> Action {
      auto o = std::make_shared<BenchVerbOptions>();
      add_run_options(app, o->request);
      add_ranks_option(app, o->request.ranks);
      app.add_option("--backend", o->backend, "as `run --backend`, in this process")->capture_default_str();
      app.add_option("--seconds", o->seconds, "how long to run")->check(CLI::Range(0.0, 3600.0))->capture_default_str();
      app.add_flag("--compile-only", o->compile_only, "compile with the store as it is, run once, print the time");
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli
