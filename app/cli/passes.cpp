#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "core/aot/graph_io.h"
#include "core/compare/check_passes.h"
#include "core/interp/random_values.h"
#include "core/ir/print.h"
#include "core/load/session.h"

namespace partita::cli {
namespace {

struct Options {
  std::string path, graph, inputs, print, stage;
  std::vector<std::string> disable;
  int stop_after = -1, threads = 1;
  bool check = false, list = false, json = false;
  std::uint64_t seed = 0;
};

Result<std::vector<Pass>> choose(const Options& o, ArtefactKind kind) {
  std::optional<PassStage> stage;
  if (o.stage.empty()) stage = stage_of(kind);
  for (const PassStage s : {PassStage::PreGrad, PassStage::Joint, PassStage::PostGrad})
    if (stage_name(s) == o.stage) stage = s;
  if (!stage)
    return input_error("passes.stage", fmt::format("no stage {}; there are pre_grad, joint, post_grad", o.stage));
  std::vector<Pass> passes = passes_of(*stage);
  for (const std::string& name : o.disable)
    if (std::ranges::none_of(all_passes(), [&](const Pass& p) { return p.name == name; }))
      return input_error("passes.name", fmt::format("no pass {}; partita passes --list shows them", name));
  return passes;
}

int list_passes(bool json) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Pass& p : all_passes()) {
    if (json)
      rows.push_back({{"name", p.name}, {"stage", stage_name(p.stage)}, {"description", p.description}});
    else
      fmt::print("{:<10}{:<24}{}\n", stage_name(p.stage), p.name, p.description);
  }
  if (json) fmt::print("{}\n", rows.dump(1));
  return 0;
}

/// Added and removed statements, as a diff by lines.
std::string changes(const Graph& before, const Graph& after) {
  const PrintOptions options{.annotations = true, .origins = false, .deletions = false};
  std::multiset<std::string> old_lines, new_lines;
  for (const Node* n : before) old_lines.insert(print(*n, options));
  for (const Node* n : after) new_lines.insert(print(*n, options));
  std::string text;
  for (const Node* n : before)
    if (!new_lines.contains(print(*n, options))) text += "    - " + print(*n, options) + "\n";
  for (const Node* n : after)
    if (!old_lines.contains(print(*n, options))) text += "    + " + print(*n, options) + "\n";
  return text;
}

Result<std::vector<Value>> inputs_for_check(const Options& o, const Artefact& artefact, Graph& graph) {
  TensorFile io;
  if (!o.inputs.empty()) {
    TRY(io, read_safetensors(o.inputs));
  }
  TRY(GraphInputs inputs,
      gather_inputs(graph, artefact.program.get(), io, o.inputs.empty() ? std::optional(o.seed) : std::nullopt));
  return std::move(inputs.values);
}

nlohmann::ordered_json as_json(const PassRun& run) {
  return {{"pass", run.name},
          {"stage", stage_name(run.stage)},
          {"changed", run.changed},
          {"disabled", run.disabled},
          {"ms", run.milliseconds},
          {"nodes_before", run.nodes_before},
          {"nodes_after", run.nodes_after}};
}

std::string as_line(const PassRun& run) {
  return fmt::format("{:<10}{:<24}{:>9.3f} ms {:>6} -> {:<6} {}\n", stage_name(run.stage), run.name, run.milliseconds,
                     run.nodes_before, run.nodes_after,
                     run.disabled  ? "disabled"
                     : run.changed ? "changed"
                                   : "(unchanged)");
}

Result<int> run(const Options& o) {
  if (o.list) return list_passes(o.json);
  if (o.path.empty()) return input_error("cli.usage", "passes needs a PATH; see partita passes --help");
  TRY(const Loaded loaded, load(o.path));
  TRY(const Artefact* artefact, loaded.pick(o.graph));
  TRY(const std::unique_ptr<Graph> graph, artefact->graph());
  TRY(const std::vector<Pass> passes, choose(o, artefact->kind));
  PassContext context;
  context.threads = o.threads;
  PipelineOptions options;
  options.disabled.insert(o.disable.begin(), o.disable.end());
  options.stop_after = o.stop_after;
  options.snapshots = !o.print.empty();
  CheckedRun done;
  if (o.check) {
    TRY(const std::vector<Value> inputs, inputs_for_check(o, *artefact, *graph));
    TRY(done, run_passes_checked(*graph, passes, context, inputs, options));
  } else {
    TRY(done.run, run_passes(*graph, passes, context, options));
  }
  nlohmann::ordered_json document = {{"graph", artefact->id}, {"passes", nlohmann::ordered_json::array()}};
  const Graph* before = done.run.before.get();
  for (const PassRun& pass : done.run.passes) {
    document["passes"].push_back(as_json(pass));
    if (o.json) {
      if (pass.after && (pass.changed || o.print == "all")) document["passes"].back()["text"] = print(*pass.after);
    } else {
      std::fputs(as_line(pass).c_str(), stdout);
      if (o.print == "changed" && pass.changed) std::fputs(changes(*before, *pass.after).c_str(), stdout);
      if (o.print == "all") fmt::print("{}\n", print(*pass.after));
    }
    before = pass.after.get();
  }
  if (done.failure) {
    const PassFailure& f = *done.failure;
    document["failure"] = {{"pass", f.pass},       {"node", f.node},     {"node_is_new", f.node_is_new},
                           {"seen_at", f.seen_at}, {"origin", f.origin}, {"output", f.difference.name}};
  } else if (o.check) {
    document["numbers"] = "unchanged";
    if (!o.json) fmt::print("the numbers agree after every pass\n");
  }
  if (o.json) fmt::print("{}\n", document.dump(1));
  if (!done.failure) return 0;
  const PassFailure& f = *done.failure;
  Report report;
  report.rows.push_back(f.difference);
  Diagnostic error{
      Fault::Differs, "check.pass",
      fmt::format("pass {} changed the numbers of {}: {}{}; --disable {} goes on without it", f.pass, f.difference.name,
                  f.node_is_new ? "it made this node" : "first at this node",
                  f.seen_at == f.node || f.seen_at == "output" ? "" : fmt::format(", seen at {}", f.seen_at), f.pass),
      Where{.file = {}, .line = 0, .graph = graph->name, .node = f.node, .origin = f.origin}};
  return error;
}

}  // namespace

extern const Command passes_command;
const Command passes_command = {
    "passes", "Step through the passes of a graph's stage", [](CLI::App& app) -> Action {
      auto o = std::make_shared<Options>();
      app.add_option("path", o->path, "graph, archive, log or folder");
      app.add_option("--graph", o->graph, "id of the graph, as `partita list` shows it");
      app.add_option("--stage", o->stage,
                     "pre_grad, joint or post_grad; when not given, the one that fits the graph's kind");
      app.add_option("--print", o->print, "changed: what each pass changed; all: the graph after each pass")
          ->check(CLI::IsMember({"changed", "all"}));
      app.add_flag("--check", o->check,
                   "interpret before and after each changed pass and name the first that changes the numbers");
      app.add_option("--inputs", o->inputs, "inputs for --check; random ones when not given");
      app.add_option("--seed", o->seed, "for random inputs")->capture_default_str();
      app.add_option("--stop-after", o->stop_after, "run only the first N passes");
      app.add_option("--disable", o->disable, "leave out a pass");
      app.add_option("--threads", o->threads)->check(CLI::Range(1, 1024))->capture_default_str();
      app.add_flag("--list", o->list, "the passes, in order");
      app.add_flag("--json", o->json, "one JSON document");
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli
