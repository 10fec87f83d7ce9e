#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/config_options.h"
#include "app/own_picture.h"
#include "app/progress_line.h"
#include "app/run_options.h"
#include "app/standard_streams.h"
#include "app/tasks/compilers.h"
#include "app/tasks/plant.h"
#include "app/tasks/rank_runs.h"
#include "app/tasks/run_artefact.h"
#include "codegen/cuda/driver.h"
#include "core/base/assign.h"
#include "core/base/output.h"
#include "core/ir/devices.h"
#include "core/store/code_store.h"

namespace partita::cli {
namespace {

struct RunVerbOptions {
  RunRequest request;
  std::string backend = "interp", compiler, out;
  CompilerSetup setup;
  bool json = false, guards = false, cache = false;

  /// Where messages go: with --json or `-o -` standard output is one document.
  std::FILE* text() const { return json || out == "-" ? stderr : stdout; }
};

/// What became of the runs that were to be CUDA graphs, on stderr.
void print_cuda_graphs() {
  const codegen::CudaGraphCounts counts = codegen::cuda_graph_counts();
  fmt::print(stderr, "CUDA graphs: {} recorded, {} replayed\n", counts.recorded, counts.replayed);
  for (const auto& [why, times] : counts.skipped)
    fmt::print(stderr, "skipping cudagraphs due to {} ({} times)\n", why, times);
}

/// What the caches of whole graphs did, on stderr.
void print_cache_events() {
  for (const CacheEvent& e : cache_log().events())
    fmt::print(stderr, "{} {}: {}{}{}\n", e.cache, name_of(e.outcome), e.graph, e.key.empty() ? "" : " " + e.key,
               e.reason.empty() ? "" : ": " + e.reason);
}

std::string summary(const TensorFile& out, const OtherRanks& ranks, bool json) {
  nlohmann::ordered_json document;
  std::string text;
  for (const auto& [key, t] : out.tensors) {
    document[key] = {{"dtype", torch_name(t.dtype)}, {"sizes", t.sizes}, {"strides", t.strides}};
    text += fmt::format("{:<40} {}[{}][{}]\n", key, short_name(t.dtype), fmt::join(t.sizes, ", "),
                        fmt::join(t.strides, ", "));
  }
  if (const std::string stand_in = name_of_stand_in(ranks); !stand_in.empty()) document["ranks"] = stand_in;
  return json ? document.dump(1) + "\n" : text + note_on_stand_in(ranks);
}

Result<TensorFile> run_with_named(const Artefact& artefact, const TensorFile& io, const RunVerbOptions& o,
                                  const Compiler& compiler, const std::shared_ptr<CodeStore>& store) {
  CompilerSetup setup = o.setup;
  setup.backend.store = store;
  setup.draw_large = own_picture;
  setup.print = [to = o.text()](std::string_view text) { fmt::print(to, "{}", text); };
  return run_with_compiler(artefact, io, o.request, compiler, setup);
}

/// Says that a graph of a GPU is computed on the CPU, so that nobody takes its numbers for the GPU's.
void tell_device(const Artefact& artefact, const Backend& backend) {
  if (artefact.program || backend.kernels == DeviceType::Cuda) return;
  const auto text = artefact.text();
  if (!text || text->find("cuda") == std::string::npos) return;
  const auto graph = artefact.graph();
  if (const auto device = graph ? other_device(**graph) : std::nullopt)
    fmt::print(stderr,
               "the graph is on {}, and its numbers are computed on the CPU; --device cpu moves the graph there, "
               "--backend cuda-emulate runs its CUDA kernels there\n",
               device->str());
}

/// All ranks of a folder.
Result<int> run_all_ranks(RunVerbOptions o) {
  if (!o.compiler.empty()) return input_error("cli.usage", "--ranks runs each rank's own graph on a --backend");
  if (o.out == "-") return input_error("cli.usage", "-o takes a folder with --ranks, and standard output is none");
  if (!o.out.empty()) TRY_DO(check_folder(o.out));
  ProgressLine line;
  o.request.progress = &line.progress();
  if (o.guards) o.request.on_sizes = [to = o.text()](const SizeCompilation& c) { fmt::print(to, "{}", text(c)); };
  TRY(const Backend* backend, find_backend(o.backend));
  TRY(const RankFolder folder, read_rank_folder(o.request.path, o.request.graph, o.request.inputs, o.request.progress));
  if (o.request.train) TRY_DO(check_trainable(folder));
  TRY(RanksRun done, run_ranks(folder, o.request, *backend));
  line.clear();
  if (!done.failure && !o.out.empty()) TRY_DO(write_results(folder, done, o.out));
  if (o.json)
    fmt::print("{}\n",
               to_json(folder, done, o.backend).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  if (done.failure) return *std::move(done.failure);
  if (!o.json) fmt::print("{}", text(folder, done));
  return 0;
}

Result<int> run(RunVerbOptions o) {
  if (o.request.ranks.kind == OtherRanks::Kind::All) return run_all_ranks(std::move(o));
  if (!o.out.empty()) TRY_DO(output_place(o.out));
  ProgressLine line;
  o.request.progress = &line.progress();
  TRY(const Backend* backend, find_backend(o.backend));
  const Compiler* compiler = nullptr;
  if (!o.compiler.empty()) TRY_DO(assign(compiler, find_compiler(o.compiler)));
  if (o.guards) o.request.on_sizes = [to = o.text()](const SizeCompilation& c) { fmt::print(to, "{}", text(c)); };
  TRY(const Loaded loaded, load(o.request.path, o.request.progress));
  TRY(const Artefact* artefact, loaded.pick(o.request.graph));
  TRY(const TensorFile io, read_io(o.request, *artefact));
  tell_device(*artefact, *backend);
  const auto store = std::make_shared<CodeStore>();
  const auto start = std::chrono::steady_clock::now();
  Result<TensorFile> out = compiler ? run_with_named(*artefact, io, o, *compiler, store)
                                    : run_artefact(*artefact, io, o.request, *backend, store);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  store->add(RunRow{remembered_path(o.request.path), artefact->id, compiler ? o.compiler : o.backend,
                    o.request.train ? "train" : "", ms, out ? "ok" : out.error().code});
  line.clear();
  if (o.cache) print_cache_events();
  if (backend->place && config().cuda_graphs) print_cuda_graphs();
  if (!out) return std::move(out).error();
  if (compiler && o.request.plant) TRY_DO(o.request.plant->met());
  if (!o.out.empty()) TRY_DO(write_safetensors(o.out, *out));
  fmt::print(o.out == "-" ? stderr : stdout, "{}", summary(*out, o.request.ranks, o.json));
  return 0;
}

}  // namespace

extern const Command run_command = {
    "run", "Run a graph on given inputs", [](CLI::App& app) -> Action {
      auto o = std::make_shared<RunVerbOptions>();
      add_run_options(app, o->request);
      add_ranks_option(app, o->request.ranks);
      add_worker_options(app, o->request);
      add_config_option(app, "--functionalize-rng", "functionalize_rng");
      std::string names;
      for (const Backend& b : backends()) names += fmt::format("\n{}: {}", b.name, b.description);
      auto* backend =
          app.add_option("--backend", o->backend, "what runs it, in this process" + names)->capture_default_str();
      names.clear();
      for (const Compiler& c : compilers()) names += fmt::format("\n{}: {}", c.name, c.description);
      auto* compiler =
          app.add_option(
                 "--compiler", o->compiler,
                 "one of PyTorch's compilers, or ours: what compiles forward and backward; compiled code runs in "
                 "another process, whose crash is an error" +
                     names)
              ->excludes(backend);
      app.add_option("--compiler-name", o->setup.name, "of the drawing (NAME.svg, or with its extension) or the dump")
          ->needs(compiler)
          ->capture_default_str();
      app.add_option("--compiler-folder", o->setup.folder, "for the drawing or the dump")
          ->needs(compiler)
          ->check(output_folder())
          ->capture_default_str();
      app.add_flag("--dump-example-inputs", o->setup.dump_example_inputs, "graph_dumper_aot writes the inputs too")
          ->needs(compiler);
      app.add_option("-o,--output", o->out,
                     "safetensors file for output.0, ..., grad.NAME; - is standard output. With --ranks a folder: "
                     "rank_0/KIND.safetensors, ...");
      app.add_flag("--guards", o->guards, "also print for which sizes a graph with symbolic ones is compiled")
          ->needs(backend);
      app.add_flag("--cache", o->cache, "also print, on stderr, what the caches of whole graphs did")->needs(backend);
      app.add_flag("--json", o->json, "one JSON document");
      app.get_option("--plant")->needs(compiler);
      app.get_option("--timeout")->needs(compiler);
      return [o] {
        if (o->compiler.empty()) o->request.worker.reset();
        return run(*o);
      };
    }};

}  // namespace partita::cli
