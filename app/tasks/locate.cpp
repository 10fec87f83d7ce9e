#include "app/tasks/locate.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/tasks/file_names.h"
#include "app/tasks/visited_run.h"
#include "codegen/torch/column.h"
#include "core/aot/graph_io.h"
#include "core/aot/run_program.h"
#include "core/base/whereabouts.h"
#include "core/interp/aten_calls.h"
#include "core/ir/place.h"
#include "core/ops/facts/seeded_numbers.h"
#include "core/partition/joint_parts.h"
#include "core/partition/partition.h"

namespace partita {

namespace {

/// Names nodes of the file in place of those that the flow made of them, and adds the place in the user's program.
void add_places(nlohmann::json& report, const Graph& graph, const NodesByPlace& file) {
  const auto name_in_file = [&](nlohmann::json& given) {
    if (!given.is_array()) return std::string();
    std::string place;
    for (nlohmann::json& name : given) {
      const Node* node = name.is_string() ? graph.find(name.get<std::string>()) : nullptr;
      if (!node) continue;
      const std::string origin = origin_text(*node);
      if (const Node* shown = file.find(node->name(), origin)) name = shown->name();
      if (!origin.empty()) place = origin;
    }
    return place;
  };
  if (nlohmann::json& node = report["node"]; node.is_object())
    if (const std::string place = name_in_file(node["given"]); !place.empty()) node["origin"] = place;
  if (nlohmann::json& buffers = report["buffers"]; buffers.is_array())
    for (nlohmann::json& buffer : buffers)
      if (buffer.is_object()) name_in_file(buffer["given"]);
}

/// A graph that eager does not run on these inputs has no right results: error locate.eager.
Status check_eager(const nlohmann::json& report, const Graph& graph) {
  if (report.value("stage", "") != "eager" || !report.contains("exception")) return {};
  const nlohmann::json& exception = report["exception"];
  return input_error(
      "locate.eager",
      fmt::format("the graph fails in eager, too: {}: {}", exception.value("type", ""), exception.value("message", "")),
      {.graph = graph.name});
}

/// A graph that Partita makes the forward and the backward of.
Result<std::vector<Located>> locate_made(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                                         const std::string& against, bool switches) {
  const auto generator = std::make_shared<Generator>(request.seed);
  torch::ColumnOptions how{
      .config = config(), .progress = request.progress, .generator = nullptr, .inference = !request.train};
  torch::ColumnOptions eager = how;
  eager.generator = generator;
  std::vector<Located> found;
  TRY(const std::unique_ptr<Graph> file, artefact.graph());
  FileNames names(*file);
  const NodesByPlace places(*file);
  const auto searched = [&](const char* name, bool backward) -> CompileFn {
    return [&, name, backward](const Graph& made) -> Result<CompiledFn> {
      const std::shared_ptr<const Graph> graph = backward ? names.backward(made) : names.forward(made);
      TRY(const CompiledFn run, torch::column("torch:eager", eager)(*graph));
      return CompiledFn([&, name, graph, run](std::vector<Value> inputs) -> Result<std::vector<Value>> {
        TRY(nlohmann::json report, torch::locate(against, *graph, inputs, how, switches));
        TRY_DO(check_eager(report, *graph));
        add_places(report, *graph, places);
        found.push_back({name, std::move(report)});
        return run(std::move(inputs));
      });
    };
  };
  RunOptions options = run_options(request, nullptr);
  options.forward = searched("forward", false);
  options.backward = searched("backward", true);
  const auto done = run_visited(artefact, io, request, options);
  if (!done) return done.error();
  return found;
}

/// The inputs of the program that PyTorch's joint graph has gradients for; empty when no joint graph tells.
std::vector<bool> differentiated_in(const CompilationGraphs& compilation, std::size_t inputs) {
  for (const CompilationGraphs::Stage& stage : compilation.stages) {
    const auto graph =
        stage.graph->kind == ArtefactKind::Joint ? stage.graph->graph() : Result<std::unique_ptr<Graph>>(nullptr);
    if (!graph || !*graph || !is_joint(**graph)) continue;
    const auto parts = find_joint_parts(**graph, std::nullopt);
    if (!parts || parts->primals.size() != inputs) continue;
    std::vector<bool> out(inputs, false);
    for (std::size_t i = 0; i < parts->gradients.size(); ++i)
      if (parts->gradients[i].node()) out[parts->gradient_of[i]] = true;
    return out;
  }
  return {};
}

/// Tangents by output of the graph, of which an archive's signature gives some to mutated inputs.
std::vector<Value> tangents_of(const Graph& graph, const ExportedProgram* program, const TensorFile& io) {
  std::vector<Value> out;
  int user = 0;
  bool any = false;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const bool results = !program || i >= program->outputs.size() ||
                         program->outputs[i].kind == ProgramOutputKind::UserOutput ||
                         program->outputs[i].kind == ProgramOutputKind::Loss;
    const Tensor* given = results ? io.find(fmt::format("tangent.{}", user++)) : nullptr;
    out.push_back(given ? Value(*given) : Value());
    any = any || given;
  }
  return any ? out : std::vector<Value>();
}

/// Error locate.inputs when a value has other sizes than the graph says.
Status check_sizes(const Graph& graph, const GraphInputs& inputs) {
  const std::vector<Node*> placeholders = graph.placeholders();
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    const TensorMeta* meta = placeholders[i]->meta.tensor();
    const Tensor* given = inputs.values[i].get<Tensor>();
    if (!meta || !given) continue;
    bool same = meta->sizes.size() == given->sizes.size();
    for (std::size_t d = 0; same && d < given->sizes.size(); ++d)
      same = !meta->sizes[d].is_int() || meta->sizes[d].as_int() == given->sizes[d];
    if (!same)
      return input_error("locate.inputs",
                         fmt::format("{} is {}, and the inputs give it the sizes [{}]", placeholders[i]->name(),
                                     annotation(placeholders[i]->meta), fmt::join(given->sizes, ", ")));
  }
  return {};
}

/// The graphs of the log that can be read, which live as long as `kept`.
std::vector<torch::ProgramQuestion::LogGraph> log_graphs(const CompilationGraphs& compilation,
                                                         std::vector<std::unique_ptr<Graph>>& kept) {
  std::vector<torch::ProgramQuestion::LogGraph> out;
  const auto read = [&](const Artefact* artefact) -> const Graph* {
    if (!artefact) return nullptr;
    auto graph = artefact->graph();
    if (!graph) return nullptr;
    kept.push_back(*std::move(graph));
    return kept.back().get();
  };
  for (const CompilationGraphs::Stage& stage : compilation.stages)
    if (const Graph* graph = read(stage.graph))
      out.push_back(
          {stage.role, stage.graph->id, stage.backward ? stage.backward->id : "", graph, read(stage.backward)});
  return out;
}

/// The end of a process in which inductor and its kernels ran is what was found; whose fault it was is not known.
Located of_death(const Diagnostic& death) {
  return {"stages",
          {{"verdict", "exception"},
           {"sure", false},
           {"stage", "run"},
           {"kernel", nullptr},
           {"node", nullptr},
           {"held", nlohmann::json::array()},
           {"evidence", nlohmann::json::array()},
           {"reason", "the process ended, by what it was at or by what ran before"},
           {"exception", {{"type", "the process"}, {"message", death.message}}}}};
}

/// Inductor's passes put calls of its own generators into a graph, which eager does not repeat for a GPU: error
/// locate.random.
Status check_generators(const Graph& graph) {
  for (const Node* node : graph)
    if (const TensorMeta* meta = node->meta.tensor();
        draws_from_seed(node->op()) && !(meta && meta->device.type == DeviceType::Cpu))
      return unsupported("locate.random",
                         fmt::format("it draws random numbers as inductor does ({}), which eager does not repeat; the "
                                     "program's own graph can be searched: --graph with the id of its dynamo graph and "
                                     "--random-weights 0",
                                     node->name()),
                         {.graph = graph.name});
  return {};
}

const char* kind_of(const CompilationGraphs& compilation, const Graph& graph) {
  if (compilation.begins_with_program() || has_torch_calls(graph)) return "program";
  if (compilation.start->kind == ArtefactKind::Backward) return "backward";
  return compilation.start->kind == ArtefactKind::Forward ? "forward" : "inference";
}

}  // namespace

bool LocatedCompilation::clean() const {
  return std::ranges::all_of(graphs, &Located::clean);
}

Result<std::vector<Located>> locate(const CompilationGraphs& compilation, const TensorFile& io,
                                    const RunRequest& request, const std::string& against, bool switches) {
  const Artefact& start = *compilation.start;
  const std::string column = with_recorded_options(against, start);
  TRY(const std::unique_ptr<Graph> graph, start.graph());
  TRY_DO(check_generators(*graph));
  torch::ProgramQuestion question{.name = start.id, .graph = graph.get()};
  question.kind = kind_of(compilation, *graph);
  const bool program = question.kind == "program";
  if (!program && request.train) return locate_made(start, io, request, column, switches);
  TRY(GraphInputs inputs, gather_inputs(*graph, start.program.get(), io, request.random_weights));
  TRY_DO(check_sizes(*graph, inputs));
  question.requires_grad.assign(inputs.values.size(), false);
  if (program && (request.train || compilation.train)) {
    question.requires_grad = differentiated_in(compilation, inputs.values.size());
    if (question.requires_grad.empty())
      question.requires_grad = inputs_to_differentiate(*graph, start.program.get(), inputs, io);
    question.tangents = tangents_of(*graph, start.program.get(), io);
  }
  const bool train = std::ranges::find(question.requires_grad, true) != question.requires_grad.end();
  if (request.train && !train) return nothing_to_differentiate(*graph);
  question.inputs = std::move(inputs.values);
  std::vector<std::unique_ptr<Graph>> kept;
  question.log = log_graphs(compilation, kept);
  const torch::ColumnOptions how{
      .config = config(), .progress = request.progress, .generator = nullptr, .inference = !train};
  auto reports = torch::locate_program(column, question, how, switches);
  if (!reports && is_death(reports.error())) return std::vector{of_death(reports.error())};
  if (!reports) return reports.error();
  std::vector<Located> found;
  const NodesByPlace places(*graph);
  for (nlohmann::json& report : *reports) {
    TRY_DO(check_eager(report, *graph));
    add_places(report, *graph, places);
    std::string name = report.value("graph", "");
    found.push_back({std::move(name), std::move(report)});
  }
  return found;
}

Result<std::vector<Located>> locate(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                                    const std::string& against, bool switches) {
  return locate({.start = &artefact, .stages = {}}, io, request, against, switches);
}

Result<std::vector<LocatedCompilation>> locate_all(const std::vector<CompilationGraphs>& compilations,
                                                   const RunRequest& request, const std::string& against,
                                                   bool switches) {
  std::vector<LocatedCompilation> found;
  for (const CompilationGraphs& compilation : compilations) {
    const auto n = static_cast<double>(found.size());
    LocatedCompilation& one = found.emplace_back(LocatedCompilation{.name = compilation.start->id});
    TRY_DO(step(request.progress, n / static_cast<double>(compilations.size()), one.name));
    const auto search = [&]() -> Result<std::vector<Located>> {
      TRY(const TensorFile io, read_io(request, *compilation.start));
      return locate(compilation, io, request, against, switches);
    };
    auto graphs = search();
    if (graphs)
      one.graphs = *std::move(graphs);
    else if (const Diagnostic& error = graphs.error();
             error.fault == Fault::Cancelled || error.code == "torch.start" || error.code == "backend.unknown")
      return error;
    else
      one.left_out = error.message;
  }
  return found;
}

Result<std::vector<Located>> asked_locate(const Artefact& artefact, const LocateRequest& asked,
                                          const Progress& progress) {
  const RunRequest request = window_request(asked.inputs, asked.train, progress);
  TRY(const TensorFile io, read_io(request, artefact));
  return locate(artefact, io, request, asked.against, asked.switches);
}

nlohmann::ordered_json to_json(const std::vector<LocatedCompilation>& found) {
  nlohmann::ordered_json graphs = nlohmann::ordered_json::array(), left_out = graphs;
  for (const LocatedCompilation& compilation : found) {
    for (const Located& l : compilation.graphs) {
      nlohmann::ordered_json one = {{"compilation", compilation.name}};
      one.update(to_json(l));
      graphs.push_back(std::move(one));
    }
    if (!compilation.left_out.empty())
      left_out.push_back({{"compilation", compilation.name}, {"reason", compilation.left_out}});
  }
  const bool wrong = !std::ranges::all_of(found, &LocatedCompilation::clean);
  return {{"found", wrong}, {"graphs", std::move(graphs)}, {"left_out", std::move(left_out)}};
}

}  // namespace partita
