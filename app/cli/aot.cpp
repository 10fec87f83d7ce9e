// The verb aot: makes the joint graph, forward and backward, writes them as text, and their metadata as JSON. With
// --inputs it makes what `run` makes for these values.
#include "core/aot/aot.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/config_options.h"
#include "app/run_options.h"
#include "app/standard_streams.h"
#include "app/tasks/config_values.h"
#include "app/tasks/cuts.h"
#include "app/tasks/graph_of_rank.h"
#include "app/tasks/run_artefact.h"
#include "app/tasks/symbols_json.h"
#include "core/aot/metadata_json.h"
#include "core/aot/run_program.h"
#include "core/base/output.h"
#include "core/ir/print.h"
#include "core/load/session.h"
#include "core/ops/facts/control.h"
#include "core/partition/cost.h"

namespace partita::cli {
namespace {

using Json = nlohmann::ordered_json;

struct AotVerbOptions {
  std::string path, graph, inputs, output, backend;
  std::vector<std::string> save, recompute;
  std::optional<std::size_t> forward_outputs;
  bool inference = false, json = false, as_run = false, differentiate = false;
};

std::string_view role_name(InputRole role) {
  static constexpr std::string_view names[] = {"user", "parameter", "buffer", "constant", "symbol"};
  return names[static_cast<std::size_t>(role)];
}

std::size_t calls(const Graph& graph) {
  std::size_t count = 0;
  for (Node* n : graph) count += n->op()->is_call();
  return count;
}

bool has_checkpoints(const Graph& graph) {
  const auto is_checkpoint = [](const Node* n) {
    const ControlOp* op = find_control(n->op());
    return op && op->kind == Control::Checkpoint;
  };
  return std::ranges::any_of(graph, is_checkpoint) ||
         std::ranges::any_of(graph.children, [](const auto& child) { return has_checkpoints(*child.second); });
}

Json node_counts(const Graph* graph) {
  if (!graph) return nullptr;
  Json out;
  for (const auto& [kind, count] : graph->kind_counts()) out[kind] = count;
  out["total"] = graph->size();
  return out;
}

Json mutations(const AotGraphs& graphs) {
  Json out = Json::array();
  for (std::size_t i = 0; i < graphs.meta.inputs.size(); ++i) {
    const InputAliasInfo& info = graphs.meta.inputs[i];
    if (!info.mutates_data && !info.mutates_metadata) continue;
    out.push_back({{"input", i},
                   {"name", graphs.inputs[i].name},
                   {"mutates_data", info.mutates_data},
                   {"mutates_metadata", info.mutates_metadata},
                   {"mutation_type", name_of(info.mutation_type)}});
  }
  return out;
}

Json aliases(const AotGraphs& graphs) {
  Json out = Json::array();
  for (std::size_t i = 0; i < graphs.meta.outputs.size(); ++i) {
    const OutputAliasInfo& info = graphs.meta.outputs[i];
    Json row = {{"output", i}, {"output_type", name_of(info.type)}, {"requires_grad", info.requires_grad}};
    row["base_idx"] = info.base_idx ? Json(*info.base_idx) : Json(nullptr);
    out.push_back(std::move(row));
  }
  return out;
}

Json stages(const AotGraphs& graphs) {
  Json out = Json::array();
  for (const StageRun& stage : graphs.stages) {
    Json passes = Json::array();
    for (const PassRun& p : stage.run.passes)
      passes.push_back({{"pass", p.name}, {"changed", p.changed}, {"ms", p.milliseconds}});
    out.push_back({{"stage", row_of(stage.stage).name}, {"ms", stage.milliseconds}, {"nodes", stage.nodes}});
    if (!passes.empty()) out.back()["passes"] = std::move(passes);
  }
  return out;
}

Json facts_of(const AotGraphs& graphs, const Wrappers& wrappers, const AotVerbOptions& o) {
  const Partition& p = graphs.partition;
  Json inputs = Json::array();
  for (const InputBinding& b : graphs.inputs)
    inputs.push_back({{"role", role_name(b.role)}, {"name", b.name}, {"requires_grad", b.requires_grad}});
  Json facts = {{"partitioner", config().partitioner},
                {"decompositions", config().decompositions},
                {"as_run", o.as_run},
                {"config", config_json(config(), ConfigPart::Differs)},
                {"stages", stages(graphs)},
                {"memory_budget", p.memory_budget},
                {"num_fwd_outputs", p.forward_outputs},
                {"num_symints_saved_for_bw", p.saved_symbols},
                {"saved", saved_json(p)},
                {"saved_activation_bytes", p.activation_bytes},
                {"saved_input_bytes", p.input_bytes},
                {"recomputed", p.recomputed},
                {"recomputed_operations", estimate(*p.forward, p.recomputed_operations)},
                {"nodes",
                 {{"joint", node_counts(graphs.joint.get())},
                  {"forward", node_counts(p.forward.get())},
                  {"backward", node_counts(p.backward.get())}}},
                {"inputs", inputs},
                {"mutations", mutations(graphs)},
                {"outputs", aliases(graphs)},
                {"num_intermediate_bases", graphs.meta.num_intermediate_bases},
                {"metadata", metadata_json(graphs)},
                {"wrappers", to_json(wrappers)},
                {"tangent_of", graphs.tangent_of}};
  add_symbols(facts, *p.forward->shapes);
  if (const auto assumed = assumed_sizes(*p.forward); !assumed.empty()) facts["assumed_sizes"] = assumed;
  return facts;
}

Status write_graphs(const AotGraphs& graphs, const Json& facts, const std::filesystem::path& folder) {
  TRY_DO(make_folder(folder.string()));
  auto write = [&](const char* name, const Graph* graph) -> Status {
    return graph ? write_file((folder / name).string(), print(*graph)) : Status();
  };
  TRY_DO(write("joint.py", graphs.joint.get()));
  if (graphs.joint) TRY_DO(write("joint_before_passes.py", graphs.before_joint_passes().get()));
  if (graphs.constants) TRY_DO(write("constants.py", graphs.constants->graph.get()));
  TRY_DO(write("forward.py", graphs.partition.forward.get()));
  TRY_DO(write("backward.py", graphs.partition.backward.get()));
  return write_file((folder / "metadata.json").string(), facts.dump(2) + "\n");
}

Result<AotOptions> read_options(const AotVerbOptions& o) {
  AotOptions a;
  a.train = !o.inference;
  a.partition.save = o.save;
  a.partition.recompute = o.recompute;
  a.partition.forward_outputs = o.forward_outputs;
  a.passes = a.snapshots = o.as_run;
  a.effect_tokens = !o.as_run;
  a.freezing &= o.as_run;
  if (!o.backend.empty()) TRY_DO(suit_compiler(o.backend, a));
  return a;
}

struct Made {
  std::shared_ptr<const AotGraphs> graphs;
  Wrappers wrappers;
};

/// With inputs: what `run` makes for them, which may share memory.
Result<Made> make(const Artefact& artefact, const AotOptions& options, const std::string& inputs) {
  if (inputs.empty()) {
    TRY(const std::unique_ptr<Graph> graph, artefact.graph());
    TRY(AotGraphs graphs, aot(*graph, artefact.program.get(), options.passes ? as_run(*graph, options) : options));
    Wrappers wrappers = wrap_graphs(graphs);
    return Made{std::make_shared<AotGraphs>(std::move(graphs)), std::move(wrappers)};
  }
  TRY(const TensorFile io, read_inputs(inputs));
  RunOptions run;
  run.aot = options;
  run.random_weights = 0;
  run.forward = run.backward = [](const Graph&) -> Result<CompiledFn> { return CompiledFn(); };
  TRY(const TrainedFunction function, TrainedFunction::make(artefact, io, run));
  return Made{function.graphs(), function.wrappers()};
}

Result<int> run(const AotVerbOptions& o) {
  TRY(const Loaded loaded, load(o.path));
  TRY(const Artefact artefact, pick_of_rank(loaded, o.graph));
  TRY(AotOptions options, read_options(o));
  options.partition.functorch = artefact.functorch;
  if (options.train && !o.differentiate) {
    TRY(const auto graph, artefact.graph());
    TRY_DO(check_not_cut(*graph, artefact));
  }
  TRY(const Made made, make(artefact, options, o.inputs));
  const AotGraphs& graphs = *made.graphs;
  const Json facts = facts_of(graphs, made.wrappers, o);
  TRY_DO(write_graphs(graphs, facts, o.output));
  if (o.json) {
    fmt::print("{}\n", facts.dump(2));
    return 0;
  }
  const Partition& p = graphs.partition;
  if (graphs.joint) fmt::print("joint     {} calls\n", calls(*graphs.joint));
  fmt::print("forward   {} calls\n", calls(*p.forward));
  if (p.backward) {
    fmt::print("backward  {} calls, {} of them recomputed (about {} operations)\n", calls(*p.backward),
               p.recomputed.size(), p.recomputed_operations.str());
    fmt::print("saved     {} values: {} bytes of activations, {} bytes of inputs\n", p.saved.size(), p.activation_bytes,
               p.input_bytes);
    for (const auto& [symbol, size] : assumed_sizes(*p.forward))
      fmt::print("assumed   {} = {}: the file has no hint for it\n", symbol, size);
  }
  TRY(const auto source, artefact.graph());
  if (p.backward && artefact.kind == ArtefactKind::Dynamo && has_checkpoints(*source))
    fmt::print(
        "assumed   checkpoints without a context_fn, which dynamo's text does not hold; the joint graph's does\n");
  for (const Wrapper& w : made.wrappers) fmt::print("wrapper   {}: {}\n", name_of(w), summary(w));
  fmt::print("{}\n", o.as_run ? "the graphs that `run` compiles"
                              : "AOTAutograd's graphs; with --as-run those that `run` compiles, after the passes");
  return 0;
}

}  // namespace

extern const Command aot_command = {
    "aot", "Functionalise, differentiate and partition a graph", [](CLI::App& app) -> Action {
      auto o = std::make_shared<AotVerbOptions>();
      add_graph_options(app, o->path, o->graph)->required();
      app.add_option(
          "--inputs", o->inputs,
          "safetensors file: make what `run` makes for inputs that require grad or share memory as these do");
      add_config_option(app, "--device", "device");
      add_config_option(app, "--partitioner", "partitioner");
      add_config_option(app, "--decompositions", "decompositions");
      app.add_option("--save", o->save, "keep this value for the backward")->expected(1)->take_all();
      app.add_option("--recompute", o->recompute, "compute this value again in the backward")->expected(1)->take_all();
      app.add_option("--forward-outputs", o->forward_outputs,
                     "of a joint graph whose outputs do not tell: how many of them are the forward's");
      auto* budget = add_config_option(app, "--memory-budget", "memory_budget");
      app.add_flag("--as-run", o->as_run,
                   "the graphs that `run` compiles: after the pre-grad and joint passes, with tangents of aliases");
      app.add_option("--backend", o->backend, "the graphs that `run --backend` compiles; implies --as-run");
      add_config_option(app, "--functionalize-rng", "functionalize_rng");
      app.add_flag("--inference", o->inference, "no backward: the functional graph only")->excludes(budget);
      app.add_flag("--differentiate", o->differentiate,
                   "also a graph that is cut out already: a forward, a backward, a graph of inference")
          ->excludes("--inference");
      app.add_flag("--json", o->json, "print metadata.json instead of a summary");
      app.add_option("-o,--output", o->output,
                     "folder for joint.py, constants.py, forward.py, backward.py, metadata.json")
          ->required()
          ->check(output_folder());
      return [o] {
        o->as_run |= !o->inputs.empty() || !o->backend.empty();
        return run(*o);
      };
    }};

}  // namespace partita::cli
