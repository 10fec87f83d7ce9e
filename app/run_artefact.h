#pragma once
// Running an artefact by the contract of the command line (design.md, section 6).
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/backends.h"
#include "core/aot/run_program.h"
#include "core/compare/compare.h"
#include "core/load/safetensors.h"
#include "core/load/session.h"

namespace CLI {
class App;
}

namespace partita {

struct RunRequest {
  std::string path, graph, inputs, partitioner = "min-cut";
  bool train = false;
  int threads = 1;
  std::optional<std::uint64_t> random_weights;
  std::uint64_t seed = Generator::default_seed;  ///< of the generator that random operators draw from
};
/// Declares path, --graph, --inputs, --train, --partitioner, --threads, --random-weights, --seed.
void add_run_options(CLI::App& app, RunRequest& request);

/// A safetensors file, or tensors made up for a graph_dumper's .input as PyTorch's get_inputs does.
Result<TensorFile> read_inputs(const std::string& path);
/// The --inputs file; empty when none is given.
Result<TensorFile> read_io(const RunRequest& request);

/// What run_program is to do, with one compiler for both graphs.
RunOptions run_options(const RunRequest& request, const CompileFn& compile);

/// OUT of one run. Interpreters run the graph as it stands; compilers, and all with --train, go through AOT.
Result<TensorFile> run_artefact(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                                const Backend& backend, const std::shared_ptr<CodeStore>& store);

/// What an IO file holds of the results: output.N, input_after.N, ...; gradients with `train` alone.
TensorFile stored_results(const TensorFile& io, bool train);
/// A row for each of the expected results. Strides that a file does not tell are not to be held against anybody.
Report compare_results(const TensorFile& expected, const TensorFile& found, const Tolerance& tolerance, bool strides);

/// One report for the forward (or inference) graph and, with --train, one for the backward: every node of b against a.
Result<std::vector<Report>> compare_artefact_nodes(const Artefact& artefact, const TensorFile& io,
                                                   const RunRequest& request, const Backend& a, const Backend& b,
                                                   const Tolerance& tolerance, const std::shared_ptr<CodeStore>& store);

}  // namespace partita
