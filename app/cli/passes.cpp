// The verb passes: brings a graph to a stage by the flow of `run`, runs that stage's passes, and prints what each of
// them changed. --check compares the numbers before and after each pass (core/compare/check_passes.h).
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/config_options.h"
#include "app/run_options.h"
#include "app/tasks/checked_flow.h"
#include "app/tasks/graph_changes.h"
#include "app/tasks/graph_of_rank.h"
#include "app/tasks/run_artefact.h"
#include "core/aot/aot.h"
#include "core/aot/graph_io.h"
#include "core/aot/text_roles.h"
#include "core/base/assign.h"
#include "core/compare/check_passes.h"
#include "core/compare/report_json.h"
#include "core/fake/propagate.h"
#include "core/interp/random_values.h"
#include "core/ir/place.h"
#include "core/ir/print.h"
#include "core/load/session.h"

namespace partita::cli {
namespace {

struct PassesVerbOptions {
  std::string path, graph, inputs, print, stage, backend;
  int stop_after = -1;
  bool check = false, list = false, json = false, train = false;
  std::uint64_t seed = 0;
  AotOptions how = {};  ///< the graphs that the backend asks for
};

Result<Stage> choose_stage(const PassesVerbOptions& o, ArtefactKind kind) {
  if (o.stage.empty()) return o.train ? Stage::PostGradPasses : stage_of(kind);
  for (const Stage s : {Stage::PreGradPasses, Stage::JointPasses, Stage::PostGradPasses})
    if (row_of(s).passes == o.stage) return s;
  return input_error("passes.stage", fmt::format("no stage {}; there are pre_grad, joint, post_grad", o.stage));
}

/// The graphs at a stage, and what the flow did on its way there.
struct Reached {
  struct Named {
    std::string name;  ///< joint, forward or backward; empty for the graph of the file
    std::unique_ptr<Graph> graph;
  };
  std::vector<Named> graphs;
  std::vector<StageRun> before;
};

bool at_own_stage(const PassesVerbOptions& o, const Artefact& artefact, Stage stage) {
  const Stage own = stage_of(artefact.kind);
  return stage == Stage::PreGradPasses || (stage <= own && !(o.train && own == Stage::PostGradPasses));
}

bool trains(const PassesVerbOptions& o, const Artefact& artefact, Stage stage) {
  return o.train || stage == Stage::JointPasses || stage_of(artefact.kind) == Stage::JointPasses;
}

/// A graph of the file is at its own stage; from there the flow that `run` takes makes the later ones.
Result<Reached> reach(const PassesVerbOptions& o, const Artefact& artefact, Stage stage) {
  TRY(std::unique_ptr<Graph> graph, artefact.graph());
  Reached out;
  if (at_own_stage(o, artefact, stage)) {
    if (stage_of(artefact.kind) != Stage::PreGradPasses) TRY_DO(settle_annotations(*graph));
    out.graphs.push_back({{}, std::move(graph)});
    return out;
  }
  AotOptions how = o.how;
  how.train = trains(o, artefact, stage);
  how = as_run(*graph, artefact, how);
  how.snapshots = !o.print.empty();
  how.until = stage == Stage::JointPasses ? Stage::Decompositions : Stage::Partition;
  TRY(AotGraphs made, aot(*graph, artefact.program.get(), how));
  out.before = std::move(made.stages);
  if (stage == Stage::JointPasses) {
    out.graphs.push_back({"joint", std::move(made.joint)});
    return out;
  }
  out.graphs.push_back({"forward", std::move(made.partition.forward)});
  if (made.partition.backward) out.graphs.push_back({"backward", std::move(made.partition.backward)});
  return out;
}

int list_passes(bool json) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Pass& p : all_passes()) {
    if (json)
      rows.push_back({{"name", p.name}, {"stage", row_of(p.stage).passes}, {"description", p.description}});
    else
      fmt::print("{:<11}{:<24}{}\n", row_of(p.stage).passes, p.name, p.description);
  }
  if (json) fmt::print("{}\n", rows.dump(1));
  return 0;
}

/// Values for a graph of the file.
Result<std::vector<Value>> inputs_for_check(const PassesVerbOptions& o, const Artefact& artefact, Graph& graph) {
  TensorFile io;
  if (!o.inputs.empty()) TRY_DO(assign(io, read_safetensors(o.inputs)));
  TRY(GraphInputs inputs,
      gather_inputs(graph, artefact.program.get(), io, o.inputs.empty() ? std::optional(o.seed) : std::nullopt));
  return std::move(inputs.values);
}

/// Where the inputs are random and nothing tells what is trained, all floating inputs are.
Result<TensorFile> inputs_for_flow(const PassesVerbOptions& o, const Artefact& artefact) {
  if (!o.inputs.empty()) return read_inputs(o.inputs);
  TensorFile io;
  TRY(const std::unique_ptr<Graph> graph, artefact.graph());
  const std::vector<Node*> placeholders = graph->placeholders();
  const auto is_weight = [](const Node* n) { return text_role(*n).role == InputRole::Parameter; };
  if (!o.train || artefact.program || is_joint(*graph) || std::ranges::any_of(placeholders, is_weight)) return io;
  const std::vector<std::string> keys = text_keys(*graph, io);
  TRY(const std::vector<Value> values, random_inputs(*graph, o.seed));
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (const Tensor* t = values[i].get<Tensor>()) {
      Tensor& given = io.tensors.emplace(keys[i], *t).first->second;
      given.requires_grad = is_floating(t->dtype) || is_complex(t->dtype);
    }
  return io;
}

nlohmann::ordered_json as_json(const PassRun& run, const std::string& graph) {
  nlohmann::ordered_json out = {{"pass", run.name},
                                {"stage", row_of(run.stage).passes},
                                {"changed", run.changed},
                                {"disabled", run.disabled},
                                {"ms", run.milliseconds},
                                {"nodes_before", run.nodes_before},
                                {"nodes_after", run.nodes_after}};
  if (!graph.empty()) out["graph"] = graph;
  return out;
}

/// `numbers`: how far the pass moved a result; null: it was not checked.
std::string as_line(const PassRun& run, const Difference* numbers) {
  const std::string moved = !numbers ? ""
                            : numbers->max_abs == 0 && numbers->ok()
                                ? ", numbers equal"
                                : fmt::format(", numbers off by {:.3g} at {}", numbers->max_abs, numbers->name);
  return fmt::format("{:<11}{:<24}{:>9.3f} ms {:>6} -> {:<6} {}{}\n", row_of(run.stage).passes, run.name,
                     run.milliseconds, run.nodes_before, run.nodes_after,
                     run.disabled  ? "disabled"
                     : run.changed ? "changed"
                                   : "(unchanged)",
                     moved);
}

/// Each rewrite of a pass with what it changed, as text, or as "rewrites" of its row.
Status show_rewrites(const PassesVerbOptions& o, const PassRun& run, const PassContext& context, const Graph& before,
                     nlohmann::ordered_json& row) {
  const std::vector<Pass> passes = passes_of(run.stage);
  const auto pass = std::ranges::find(passes, run.name, &Pass::name);
  std::unique_ptr<Graph> last = before.clone();
  for (std::size_t i = 0; i < run.rewrites.size(); ++i) {
    const RewriteStep& step = run.rewrites[i];
    TRY(std::unique_ptr<Graph> graph, after_rewrites(before, *pass, context, i + 1));
    const Node* node = last->find(step.node);
    const std::string where = node ? origin_text(*node) : "";
    const std::string changes = graph_changes(*last, *graph, o.json ? "" : "        ");
    if (o.json)
      row["rewrites"].push_back(
          {{"rule", step.rule}, {"graph", step.graph}, {"node", step.node}, {"origin", where}, {"changes", changes}});
    else
      fmt::print("    {} {} at {}{}\n{}", i + 1, step.rule, step.node, where.empty() ? "" : ", " + where, changes);
    last = std::move(graph);
  }
  return {};
}

/// Prints what the passes did, or appends it to `rows`.
Status show(const PassesVerbOptions& o, const CheckedRun& checked, const std::string& graph,
            nlohmann::ordered_json& rows) {
  const PipelineRun& run = checked.run;
  const Graph* before = run.before.get();
  if (!graph.empty() && !o.json && !run.passes.empty()) fmt::print("{} graph\n", graph);
  for (const PassRun& pass : run.passes) {
    rows.push_back(as_json(pass, graph));
    const auto numbers = checked.numbers.find(pass.name);
    const Difference* moved = numbers == checked.numbers.end() ? nullptr : &numbers->second;
    if (o.json) {
      if (moved) rows.back()["numbers_off_by"] = number_json(moved->max_abs);
      if (pass.after && (pass.changed || o.print == "all")) rows.back()["text"] = print(*pass.after);
    } else {
      std::fputs(as_line(pass, moved).c_str(), stdout);
      if (o.print == "changed" && pass.changed) std::fputs(graph_changes(*before, *pass.after, "    ").c_str(), stdout);
      if (o.print == "all") fmt::print("{}\n", print(*pass.after));
    }
    if (o.print == "rewrites" && pass.changed)
      TRY_DO(show_rewrites(o, pass, {.pack_linears = o.how.pack_linears, .fixed = run.fixed}, *before, rows.back()));
    before = pass.after.get();
  }
  return {};
}

Result<CheckedRun> run_at(const PassesVerbOptions& o, const Artefact& artefact, const Reached::Named& at, Stage stage) {
  PassContext context{.pack_linears = o.how.pack_linears};
  PipelineOptions options;
  options.stop_after = o.stop_after;
  options.snapshots = !o.print.empty();
  const std::vector<Pass> passes = passes_of(stage);
  if (stage == Stage::PostGradPasses)
    if (const Status known = prepare_post_grad(*at.graph); !known)
      fmt::print(stderr, "partita: warning: no compiler takes this graph: {}\n", known.error().line());
  if (o.check) {
    TRY(const std::vector<Value> inputs, inputs_for_check(o, artefact, *at.graph));
    return run_passes_checked(*at.graph, passes, context, inputs, options);
  }
  CheckedRun done;
  TRY(done.run, run_passes(*at.graph, passes, context, options));
  return done;
}

/// Every pass of the flow, with the values that a run gives its graphs.
Result<std::vector<CheckedStage>> check_stages(const PassesVerbOptions& o, const Artefact& artefact, Stage stage) {
  RunRequest request;
  request.train = trains(o, artefact, stage);
  request.seed = o.seed;
  if (o.inputs.empty()) request.random_weights = o.seed;
  TRY(const TensorFile io, inputs_for_flow(o, artefact));
  PipelineOptions options;
  options.stop_after = o.stop_after;
  options.snapshots = !o.print.empty();
  return check_flow(artefact, io, request, o.how, stage, options);
}

Result<int> run(const PassesVerbOptions& o) {
  if (o.list) return list_passes(o.json);
  if (o.path.empty()) return input_error("cli.usage", "passes needs a PATH; see partita passes --help");
  TRY(const Loaded loaded, load(o.path));
  TRY(const Artefact artefact, pick_of_rank(loaded, o.graph));
  TRY(const Stage stage, choose_stage(o, artefact.kind));
  nlohmann::ordered_json document = {{"graph", artefact.id}, {"passes", nlohmann::ordered_json::array()}};
  CheckedRun done;
  std::string graph;
  if (o.check && !at_own_stage(o, artefact, stage)) {
    TRY(std::vector<CheckedStage> stages, check_stages(o, artefact, stage));
    for (CheckedStage& at : stages) {
      TRY_DO(show(o, at.checked, at.graph, document["passes"]));
      graph = at.graph;
      done = std::move(at.checked);
    }
  } else {
    TRY(const Reached reached, reach(o, artefact, stage));
    for (const StageRun& ran : reached.before)
      TRY_DO(show(o, {ran.run, {}, {}}, graph_of(ran.stage, reached.graphs.size() > 1 || stage == Stage::JointPasses),
                  document["passes"]));
    for (const Reached::Named& at : reached.graphs) {
      graph = at.graph->name;
      TRY(done, run_at(o, artefact, at, stage));
      TRY_DO(show(o, done, at.name, document["passes"]));
      if (done.failure) break;
    }
  }
  if (done.failure) {
    const PassFailure& f = *done.failure;
    document["failure"] = {{"pass", f.pass},       {"node", f.node},     {"node_is_new", f.node_is_new},
                           {"seen_at", f.seen_at}, {"origin", f.origin}, {"output", f.difference.name}};
    if (f.rewrite)
      document["failure"]["rewrite"] = {{"number", *f.rewrite + 1}, {"rule", f.step.rule}, {"node", f.step.node}};
  } else if (o.check) {
    document["numbers"] = "unchanged";
    if (!o.json) fmt::print("the numbers agree after every pass\n");
  }
  if (o.json) fmt::print("{}\n", document.dump(1));
  if (!done.failure) return 0;
  const PassFailure& f = *done.failure;
  Diagnostic error{
      Fault::Differs, "check.pass",
      fmt::format("pass {}{} changed the numbers of {}: {}{}; --disable {} goes on without it", f.pass,
                  f.rewrite ? fmt::format(", rewrite {} ({} at {}),", *f.rewrite + 1, f.step.rule, f.step.node) : "",
                  f.difference.name, f.node_is_new ? "it made this node" : "first at this node",
                  f.seen_at == f.node || f.seen_at == "output" ? "" : fmt::format(", seen at {}", f.seen_at), f.pass),
      Where{.file = {}, .line = 0, .graph = graph, .node = f.node, .origin = f.origin}};
  return error;
}

}  // namespace

extern const Command passes_command = {
    "passes", "Step through the passes of a graph's stage", [](CLI::App& app) -> Action {
      auto o = std::make_shared<PassesVerbOptions>();
      add_graph_options(app, o->path, o->graph);
      app.add_option("--stage", o->stage,
                     "pre_grad, joint or post_grad; when not given, the one that fits the graph's kind. A graph of an "
                     "earlier kind is first brought there, as `run` does");
      app.add_flag("--train", o->train, "the flow of `run --train`: joint passes, then those of forward and backward");
      app.add_option(
             "--print", o->print,
             "changed: what each pass changed; rewrites: what each of its rewrites did, with its rule and place; all: "
             "the graph after each pass")
          ->check(CLI::IsMember({"changed", "rewrites", "all"}));
      app.add_flag("--check", o->check,
                   "interpret before and after each changed pass and name the first that changes the numbers, and its "
                   "guilty rewrite");
      app.add_option("--inputs", o->inputs, "inputs for --check, as `run` takes them; random ones when not given");
      app.add_option("--seed", o->seed, "for random inputs")->capture_default_str();
      app.add_option("--stop-after", o->stop_after, "run only the first N passes")->check([](const std::string& text) {
        const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
        return digits ? std::string() : "takes a whole number from 0 up, and got '" + text + "'";
      });
      add_config_option(app, "--disable,--skip", "disable_passes");
      add_config_option(app, "--order", "pass_order");
      add_config_option(app, "--threads", "threads");
      app.add_flag("--list", o->list, "the passes, in order");
      app.add_flag("--json", o->json, "one JSON document");
      app.add_option("--backend", o->backend, "the flow and passes of `run --backend`");
      return [o]() -> Result<int> {
        if (!o->backend.empty()) TRY_DO(suit_compiler(o->backend, o->how));
        return run(*o);
      };
    }};

}  // namespace partita::cli
