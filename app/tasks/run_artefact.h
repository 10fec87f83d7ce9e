#pragma once
// Runs an artefact as `partita run` promises.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/backends.h"
#include "core/aot/graph_io.h"
#include "core/aot/run_program.h"
#include "core/compare/compare.h"
#include "core/load/safetensors.h"
#include "core/load/session.h"

namespace partita {

class PlantWatch;

/// Who stands for the other ranks of the job that a graph is a part of: `--ranks`.
struct OtherRanks {
  enum class Kind { None, All, Fake };

  Kind kind = Kind::None;
  std::int64_t size = 0;  ///< of Fake: how many ranks the job has; 0: as many as each call says
};
/// What results must say of a stand-in: "fake" or "fake:N" for JSON, a sentence for people. Empty where there is none.
std::string name_of_stand_in(const OtherRanks& ranks);
std::string note_on_stand_in(const OtherRanks& ranks);
/// "" (the ranks of a folder together), "fake" or "fake:N". Error run.ranks.
Result<OtherRanks> parse_ranks(std::string_view text);

struct RunRequest {
  std::string path, graph, inputs;
  std::string profile, steps;  ///< a chrome trace of the program's own run, and the steps of it to count: "2-4"
  bool train = false;
  OtherRanks ranks;
  std::shared_ptr<Communicator> communicator;  ///< the other ranks of a run of all; null: `ranks` says who answers
  std::optional<std::uint64_t> random_weights;
  std::uint64_t seed = Generator::default_seed;          ///< of the generator that random operators draw from
  std::optional<Generator> generator;                    ///< in its place, in the state of a recorded call
  std::optional<WorkerOptions> worker;                   ///< where compiled code runs; unset: in this process
  std::shared_ptr<PlantWatch> plant;                     ///< watches the worker's fault; null: there is none
  std::optional<unsigned> shift;                         ///< see BackendOptions
  const Progress* progress = nullptr;                    ///< may be null
  std::function<void(const SizeCompilation&)> on_sizes;  ///< see BackendOptions
};

/// What the window asks: without the path of an IO file, what neither the archive nor a recording holds is made up.
RunRequest window_request(const std::string& inputs, bool train, const Progress& progress);

/// Who answers the graph's collectives; null: nobody. Error run.ranks for all ranks, which a single graph does not
/// have.
Result<std::shared_ptr<Communicator>> communicator_of(const RunRequest& request);

/// The --inputs file; without one, the values that lie beside the artefact. Empty when there are none.
Result<TensorFile> read_io(const RunRequest& request, const Artefact& artefact);

/// The request with the generator in the state that a recording has of it ("generator.cpu"). Error load.recording for
/// what is no state of PyTorch's.
Result<RunRequest> with_recorded_generator(RunRequest request, const TensorFile& io);
/// A backend, or a check of minify, that ends with torch:inductor, with the options of inductor that the program of a
/// recorded graph set; any other as it is.
std::string with_recorded_options(const std::string& name, const Artefact& graph);
/// What random operators draw from.
std::shared_ptr<Generator> new_generator(const RunRequest& request);

/// What run_program is to do, with one compiler for both graphs.
RunOptions run_options(const RunRequest& request, const CompileFn& compile);

/// The OUT file of one run. Interpreters run the graph as it stands; compilers, and all with --train, go through AOT.
Result<TensorFile> run_artefact(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                                const Backend& backend, const std::shared_ptr<CodeStore>& store);

/// Is it the key of a result in a file of values: output.0, grad.weight, input_after.1?
bool is_result(const std::string& key);
/// The results that an IO file holds: output.N, input_after.N, ...; gradients only with `train`.
TensorFile stored_results(const TensorFile& io, bool train);
/// Error compare.stored where these are none: `what`, "the --inputs file", holds none, or why none can be compared.
Status check_stored(const TensorFile& results, std::string_view what);
/// A row for each of the expected results. `strides`: compare those too, which files do not have.
Report compare_results(const TensorFile& expected, const TensorFile& found, const Tolerance& tolerance, bool strides);

/// The results of runs in double, each made when the first of several comparisons needs it.
class ExactResults {
 public:
  /// The results of all ranks, or of the one graph; with a shift, those that rounding might give (interpret_shifted).
  using Run = std::function<Result<std::vector<TensorFile>>(std::optional<unsigned> shift)>;

  explicit ExactResults(Run run) : run_(std::move(run)) {}
  /// Runs an artefact. What it is given must outlive it.
  ExactResults(const Artefact& artefact, const TensorFile& io, const RunRequest& request);
  /// judge_both_sides() for the rows that differ. Where there is no run in double, or it lacks the row, values of half
  /// types may be one unit in the last place apart. Error only when the work is cancelled.
  Status judge(std::vector<Difference>& rows, const TensorFile& expected, const TensorFile& found,
               const Tolerance& tolerance, std::size_t rank = 0);
  /// The same where the found results are PyTorch's, as those of a recording: they may be as far from the run in double
  /// as rounding takes them, though the interpreter is nearer.
  Status judge_stored(std::vector<Difference>& rows, const TensorFile& expected, const TensorFile& stored,
                      const Tolerance& tolerance, std::size_t rank = 0);

 private:
  /// How far rounding moves each element of a result.
  Result<std::vector<double>> moved(std::size_t rank, const std::string& key);

  Run run_;
  std::optional<Result<std::vector<TensorFile>>> results_;
  std::optional<Result<std::vector<std::vector<double>>>> moved_;  ///< by rank and key, in order
};

/// adapt_options() for a compiler by name. Error backend.no_passes for a backend that runs graphs as they are.
Status suit_compiler(std::string_view name, AotOptions& options);

}  // namespace partita
