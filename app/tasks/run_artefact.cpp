#include "app/tasks/run_artefact.h"

#include <charconv>

#include <fmt/format.h>

#include "app/tasks/graph_of_rank.h"
#include "app/tasks/plant.h"
#include "core/aot/run_program.h"
#include "core/compare/per_node.h"
#include "core/compare/rounding.h"
#include "core/ops/record/fake_ranks.h"

namespace partita {
bool is_result(const std::string& key) {
  for (const char* stem : {"output.", "grad.", "input_after.", "buffer_after.", "param_after."})
    if (key.starts_with(stem)) return true;
  return false;
}

std::string name_of_stand_in(const OtherRanks& ranks) {
  if (ranks.kind != OtherRanks::Kind::Fake) return {};
  return ranks.size > 0 ? fmt::format("fake:{}", ranks.size) : "fake";
}

std::string note_on_stand_in(const OtherRanks& ranks) {
  const std::string name = name_of_stand_in(ranks);
  if (name.empty()) return {};
  return fmt::format(
      "--ranks {}: no other rank ran; what they send was made up as PyTorch's FakeProcessGroup does on rank 0, so "
      "sizes are right and numbers mean nothing\n",
      name);
}

Result<OtherRanks> parse_ranks(std::string_view text) {
  if (text.empty()) return OtherRanks{OtherRanks::Kind::All};
  OtherRanks out{OtherRanks::Kind::Fake};
  if (text == "fake") return out;
  constexpr std::string_view sized = "fake:";
  constexpr std::int64_t most = 1 << 20;
  const std::string_view number = text.starts_with(sized) ? text.substr(sized.size()) : std::string_view();
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), out.size);
  if (error == std::errc() && end == number.data() + number.size() && out.size >= 1 && out.size <= most) return out;
  return input_error("run.ranks", fmt::format("--ranks {}: it takes nothing (all ranks of the folder), fake, or fake:N "
                                              "for a job of N ranks",
                                              text));
}

Result<std::shared_ptr<Communicator>> communicator_of(const RunRequest& request) {
  if (request.communicator || request.ranks.kind == OtherRanks::Kind::None) return request.communicator;
  if (request.ranks.kind == OtherRanks::Kind::All)
    return unsupported("run.ranks",
                       "--ranks alone means all ranks of a folder, and this is one graph; stand in for "
                       "the other ranks with --ranks fake");
  return std::shared_ptr<Communicator>(std::make_shared<FakeRanks>(request.ranks.size));
}

RunRequest window_request(const std::string& inputs, bool train, const Progress& progress) {
  RunRequest request;
  request.inputs = inputs;
  request.train = train;
  request.progress = &progress;
  if (inputs.empty()) request.random_weights = 0;
  return request;
}

Result<TensorFile> read_io(const RunRequest& request, const Artefact& artefact) {
  if (request.inputs.empty()) return own_inputs(artefact);
  return read_inputs(request.inputs);
}

Result<RunRequest> with_recorded_generator(RunRequest request, const TensorFile& io) {
  const Tensor* state = io.find("generator.cpu");
  if (!state) return request;
  Generator generator;
  if (state->dtype != DType::UInt8 || !state->is_contiguous() ||
      !generator.set_state({state->data(), static_cast<std::size_t>(state->numel())}))
    return input_error("load.recording", "the recorded state of the random generator is none of PyTorch's");
  request.generator = generator;
  return request;
}

std::string with_recorded_options(const std::string& name, const Artefact& graph) {
  std::string out = name;
  if (name.ends_with("torch:inductor") && graph.recorded)
    for (const auto& [option, value] : graph.recorded->options) out += fmt::format("+{}={}", option, value);
  return out;
}

std::shared_ptr<Generator> new_generator(const RunRequest& request) {
  return std::make_shared<Generator>(request.generator ? *request.generator : Generator(request.seed));
}

RunOptions run_options(const RunRequest& request, const CompileFn& compile) {
  RunOptions options;
  options.aot.train = request.train;
  options.forward = options.backward = compile;
  options.random_weights = request.random_weights;
  options.seed = request.seed;
  return options;
}

Result<TensorFile> run_artefact(const Artefact& given, const TensorFile& io, const RunRequest& asked,
                                const Backend& backend, const std::shared_ptr<CodeStore>& store) {
  TRY(const RunRequest request, with_recorded_generator(asked, io));
  TRY(const std::optional<Artefact> of_rank, artefact_alone(given, request.ranks.size));
  const Artefact& artefact = of_rank ? *of_rank : given;
  const auto on_sizes = [notify = request.on_sizes](const SizeCompilation& c) {
    if (notify) return notify(c);
    const std::string all = text(c);
    if (c.kind == SizeCompilation::Kind::Interpreted)
      fmt::print(stderr, "{}; run --guards tells why\n", all.substr(0, all.find('\n')));
  };
  TRY(const std::shared_ptr<Communicator> communicator, communicator_of(request));
  const BackendOptions how{.progress = request.progress,
                           .fixed_parameters = !request.train,
                           .generator = new_generator(request),
                           .communicator = communicator,
                           .store = store,
                           .on_sizes = on_sizes,
                           .worker = request.worker,
                           .shift = request.shift,
                           .inference = !request.train};
  const CompileFn compile = backend.make(how);
  if (backend.takes_any_graph() && !request.train && !config().functionalize_rng)
    return run_as_it_is(artefact, io, request.random_weights, compile);
  RunOptions options = run_options(request, compile);
  options.cache = backend.cache(how);
  adapt_options(backend, options.aot);
  if (!how.worker) options.place = backend.place;
  return run_program(artefact, io, options);
}

Report compare_results(const TensorFile& expected, const TensorFile& found, const Tolerance& tolerance, bool strides) {
  Report report;
  for (const TensorFile* side : {&expected, &found})
    for (const auto& [key, reason] : side->left_out)
      if (is_result(key)) report.left_out.emplace(key, reason);
  for (const auto& [key, tensor] : expected.tensors) {
    if (!is_result(key) || report.left_out.contains(key)) continue;
    const Tensor* other = found.find(key);
    report.rows.push_back(compare_values(key, Value(tensor), other ? Value(*other) : Value(), tolerance, strides));
  }
  return report;
}

ExactResults::ExactResults(const Artefact& artefact, const TensorFile& io, const RunRequest& request)
    : run_([&artefact, &io, &request](std::optional<unsigned> shift) -> Result<std::vector<TensorFile>> {
        TRY(const Backend* wide, find_backend("f64"));
        RunRequest own = request;
        own.shift = shift;
        TRY(TensorFile results, run_artefact(artefact, io, own, *wide, nullptr));
        return std::vector{std::move(results)};
      }) {}

Result<std::vector<double>> ExactResults::moved(std::size_t rank, const std::string& key) {
  const auto tensors_of = [](const std::vector<TensorFile>& ranks) {
    std::vector<Value> out;
    for (const TensorFile& results : ranks)
      for (const auto& [name, tensor] : results.tensors) out.emplace_back(tensor);
    return out;
  };
  const auto shifted_run = [&](unsigned seed) -> Result<std::vector<Value>> {
    TRY(const std::vector<TensorFile> ranks, run_(seed));
    return tensors_of(ranks);
  };
  if (!moved_) moved_ = moved_by_rounding(shifted_run, tensors_of(**results_));
  if (!*moved_) return moved_->error();
  std::size_t place = 0;
  for (std::size_t r = 0; r < rank; ++r) place += (**results_)[r].tensors.size();
  const auto& own = (**results_)[rank].tensors;
  return (**moved_)[place + static_cast<std::size_t>(std::distance(own.begin(), own.find(key)))];
}

Status ExactResults::judge(std::vector<Difference>& rows, const TensorFile& expected, const TensorFile& found,
                           const Tolerance& tolerance, std::size_t rank) {
  for (Difference& row : rows) {
    const Tensor *theirs = expected.find(row.name), *ours = found.find(row.name);
    if (row.values_agree || !theirs || !ours) continue;
    if (!results_) results_ = run_(std::nullopt);
    if (!*results_ && results_->error().fault == Fault::Cancelled) return results_->error();
    if (const Tensor* wide = *results_ ? (**results_)[rank].find(row.name) : nullptr) {
      TRY_DO(judge_both_sides(row, Value(*wide), Value(*theirs), Value(*ours), tolerance,
                              [&] { return moved(rank, row.name); }));
    } else {
      const Tolerance coarser{tolerance.relative, tolerance.absolute, true};
      row.rounding = compare_values(row.name, Value(*theirs), Value(*ours), coarser, false).values_agree;
    }
  }
  return {};
}

Status ExactResults::judge_stored(std::vector<Difference>& rows, const TensorFile& expected, const TensorFile& stored,
                                  const Tolerance& tolerance, std::size_t rank) {
  for (Difference& row : rows) {
    const Tensor *ours = expected.find(row.name), *theirs = stored.find(row.name);
    if (row.values_agree || !ours || !theirs) continue;
    std::vector<Difference> turned{compare_values(row.name, Value(*theirs), Value(*ours), tolerance, false)};
    TRY_DO(judge(turned, stored, expected, tolerance, rank));
    row.rounding = turned[0].rounding;
    row.expected_error = turned[0].found_error;
    row.found_error = turned[0].expected_error;
  }
  return {};
}

TensorFile stored_results(const TensorFile& io, bool train) {
  const auto wanted = [train](const std::string& key) {
    return is_result(key) && (train || !key.starts_with("grad."));
  };
  TensorFile out;
  for (const auto& [key, tensor] : io.tensors)
    if (wanted(key)) out.tensors.emplace(key, tensor);
  for (const auto& [key, reason] : io.left_out)
    if (wanted(key)) out.left_out.emplace(key, reason);
  return out;
}

Status check_stored(const TensorFile& results, std::string_view what) {
  if (!results.tensors.empty()) return {};
  return input_error("compare.stored",
                     results.left_out.empty()
                         ? fmt::format("{} holds no output.N to compare with", what)
                         : fmt::format("no recorded result can be compared: {}", results.left_out.begin()->second));
}

Status suit_compiler(std::string_view name, AotOptions& options) {
  TRY(const Backend* backend, find_backend(name));
  if (backend->takes_any_graph())
    return input_error("backend.no_passes",
                       fmt::format("backend {} runs graphs without our passes; name one that compiles", name));
  adapt_options(*backend, options);
  return {};
}

}  // namespace partita
