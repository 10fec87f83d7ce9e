#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/backends.h"
#include "app/cli/command.h"
#include "app/code_store.h"
#include "core/aot/graph_io.h"
#include "core/compare/per_node.h"
#include "core/load/session.h"

namespace partita::cli {
namespace {

struct Options {
  std::string path, graph, inputs, out, backend = "interp", partitioner = "min-cut";
  bool train = false, dynamic = false;
  int threads = 1;
  std::optional<std::uint64_t> random_weights;
};

/// The graph as it stands, by an interpreter.
Result<TensorFile> run_as_it_is(const Artefact& artefact, const TensorFile& io, const Backend& backend, const Options& o) {
  TRY(const std::unique_ptr<Graph> graph, artefact.graph());
  TRY(GraphInputs inputs, gather_inputs(*graph, artefact.program.get(), io, o.random_weights));
  std::vector<Value> before;
  if (mutates_inputs(*graph)) {
    TRY(before, copy_values(inputs.values));
  }
  TRY(const Executable run, backend.make({.threads = o.threads, .store = std::make_shared<CodeStore>()})(*graph));
  TRY(const std::vector<Value> outputs, run(inputs.values));
  return collect_outputs(artefact.program.get(), inputs, before, outputs);
}

std::string row(const std::string& key, const Tensor& t) {
  return fmt::format("{:<40} {}[{}][{}]\n", key, short_name(t.dtype), fmt::join(t.sizes, ", "), fmt::join(t.strides, ", "));
}

Result<int> run(const Options& o) {
  TRY(const Backend* backend, find_backend(o.backend));
  TRY(const Loaded loaded, load(o.path));
  TRY(const Artefact* artefact, loaded.pick(o.graph));
  TensorFile io;
  if (!o.inputs.empty()) {
    TRY(io, read_safetensors(o.inputs));
  }
  if (o.train) return unsupported("run.train", "--train is not supported by this build");
  TRY(const TensorFile out, run_as_it_is(*artefact, io, *backend, o));
  if (!o.out.empty()) TRY_DO(write_safetensors(o.out, out));
  std::string text;
  for (const auto& [key, tensor] : out.tensors) text += row(key, tensor);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

extern const Command run_command;
const Command run_command = {
    "run", "Run a graph on given inputs", [](CLI::App& app) -> Action {
      auto o = std::make_shared<Options>();
      app.add_option("path", o->path, "graph, archive, log or folder")->required();
      app.add_option("--graph", o->graph, "id of the graph, as `partita list` shows it");
      app.add_option("--inputs", o->inputs, "safetensors file with input.0, input.1, ...");
      app.add_option("--backend", o->backend, "interp, debug, f64 or cpu")->capture_default_str();
      app.add_option("--partitioner", o->partitioner, "min-cut or default")->capture_default_str();
      app.add_option("--threads", o->threads)->check(CLI::Range(1, 1024))->capture_default_str();
      app.add_option("--random-weights", o->random_weights, "make up what neither the file nor the inputs hold, from this seed");
      app.add_flag("--train", o->train, "differentiate the outputs and return gradients");
      app.add_option("-o,--output", o->out, "safetensors file for output.0, ..., grad.NAME");
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli
