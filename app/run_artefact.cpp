#include "app/run_artefact.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "core/aot/run_program.h"
#include "core/compare/per_node.h"
#include "core/interp/random_values.h"

namespace partita {
namespace {

/// The graph as it stands.
Result<TensorFile> run_as_it_is(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                                const CompileFn& compile) {
  TRY(const std::unique_ptr<Graph> graph, artefact.graph());
  TRY(GraphInputs inputs, gather_inputs(*graph, artefact.program.get(), io, request.random_weights));
  std::vector<Value> before;
  if (mutates_inputs(*graph)) {
    TRY(before, copy_values(inputs.values));
  }
  TRY(const CompiledFn run, compile(*graph));
  TRY(const std::vector<Value> outputs, run(inputs.values));
  return collect_outputs(artefact.program.get(), inputs, before, outputs);
}

/// All runs draw the same random numbers.
Runner runner(const Backend& backend, const BackendOptions& options, std::uint64_t seed) {
  return [&backend, options, seed](const Graph& graph, std::vector<Value> inputs) -> Result<std::vector<Value>> {
    BackendOptions seeded = options;
    seeded.generator = std::make_shared<Generator>(seed);
    TRY(const CompiledFn run, backend.make(seeded)(graph));
    return run(std::move(inputs));
  };
}

bool is_result(const std::string& key) {
  for (const char* stem : {"output.", "grad.", "input_after.", "buffer_after.", "param_after."})
    if (key.starts_with(stem)) return true;
  return false;
}

}  // namespace

void add_run_options(CLI::App& app, RunRequest& request) {
  app.add_option("path", request.path, "graph, archive, log or folder")->required();
  app.add_option("--graph", request.graph, "id of the graph, as `partita list` shows it");
  app.add_option(
      "--inputs", request.inputs,
      "safetensors file with input.0, input.1, ..., or a .input pickle, whose inputs are made as get_inputs does");
  app.add_flag("--train", request.train, "differentiate the outputs and return gradients");
  app.add_option("--partitioner", request.partitioner, "min-cut or default")
      ->check(CLI::IsMember({"min-cut", "default"}))
      ->capture_default_str();
  app.add_option("--threads", request.threads)->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--random-weights", request.random_weights,
                 "make up what neither the file nor the inputs hold, from this seed");
  app.add_option("--seed", request.seed, "as torch.manual_seed, before random operators draw their numbers")
      ->capture_default_str();
}

Result<TensorFile> read_io(const RunRequest& request) {
  if (request.inputs.empty()) return TensorFile();
  return read_inputs(request.inputs);
}

RunOptions run_options(const RunRequest& request, const CompileFn& compile) {
  RunOptions options;
  options.aot.train = request.train;
  options.aot.partition.partitioner = request.partitioner == "default" ? Partitioner::Default : Partitioner::MinCut;
  options.forward = options.backward = compile;
  options.random_weights = request.random_weights;
  return options;
}

Result<TensorFile> run_artefact(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                                const Backend& backend, const std::shared_ptr<CodeStore>& store) {
  const CompileFn compile = backend.make({.threads = request.threads,
                                          .fixed_parameters = !request.train,
                                          .generator = std::make_shared<Generator>(request.seed),
                                          .store = store});
  if (backend.takes_any_graph && !request.train) return run_as_it_is(artefact, io, request, compile);
  return run_program(artefact, io, run_options(request, compile));
}

Report compare_results(const TensorFile& expected, const TensorFile& found, const Tolerance& tolerance, bool strides) {
  Report report;
  for (const auto& [key, tensor] : expected.tensors) {
    if (!is_result(key)) continue;
    const Tensor* other = found.find(key);
    report.rows.push_back(compare_values(key, Value(tensor), other ? Value(*other) : Value(), tolerance, strides));
  }
  return report;
}

TensorFile stored_results(const TensorFile& io, bool train) {
  TensorFile out;
  for (const auto& [key, tensor] : io.tensors)
    if (is_result(key) && (train || !key.starts_with("grad."))) out.tensors.emplace(key, tensor);
  return out;
}

Result<std::vector<Report>> compare_artefact_nodes(const Artefact& artefact, const TensorFile& io,
                                                   const RunRequest& request, const Backend& a, const Backend& b,
                                                   const Tolerance& tolerance,
                                                   const std::shared_ptr<CodeStore>& store) {
  // The comparison takes the place of a compiler: it gets the graphs and inputs of the run in question, and returns
  // A's values, so that the backward is compared on the same numbers.
  std::vector<Report> reports;
  const BackendOptions options{.threads = request.threads, .store = store};
  TRY(const Backend* wide, find_backend("f64"));
  const Runner expected = runner(a, options, request.seed), found = runner(b, options, request.seed);
  PerNodeOptions how;
  how.tolerance = tolerance;
  how.baseline = runner(*wide, options, request.seed);
  const CompileFn compare = [&](const Graph& graph) -> Result<CompiledFn> {
    return CompiledFn([&, graph = &graph](std::vector<Value> inputs) -> Result<std::vector<Value>> {
      TRY(Report report, compare_nodes(*graph, inputs, expected, found, how));
      report.expected_name = a.name;
      report.found_name = b.name;
      reports.push_back(std::move(report));
      return expected(*graph, std::move(inputs));
    });
  };
  TRY(const TensorFile done, run_program(artefact, io, run_options(request, compare)));
  return reports;
}

}  // namespace partita
