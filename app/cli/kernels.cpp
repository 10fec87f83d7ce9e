#include "app/kernels.h"

#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/config_options.h"

namespace partita::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* pytorch = "pytorch";  // what a log or a debug folder has of inductor's

struct Options {
  RunRequest request;
  std::string backend{default_compiler().name};
  std::string show, kernel;
  bool json = false;
};

int print_json(const Json& document) {
  fmt::print("{}\n", document.dump(1, ' ', false, Json::error_handler_t::replace));
  return 0;
}

Result<int> inductor(const Options& o, const Loaded& loaded) {
  if (!o.show.empty() && o.show != "code")
    return input_error("cli.usage", "--backend pytorch has --show code only: what inductor wrote");
  std::vector<InductorCode> all = inductor_code(loaded);
  std::erase_if(all, [&](const InductorCode& code) {
    const auto is = [&](const Artefact* a) { return a && a->id == o.request.graph; };
    return !o.request.graph.empty() && !is(code.code) && !is(code.post_grad) && !is(code.pre_grad);
  });
  if (all.empty())
    return input_error("kernels.output_code",
                       "there is no output code of inductor in it" +
                           (o.request.graph.empty() ? std::string() : " for " + o.request.graph) +
                           "; TORCH_TRACE and TORCH_COMPILE_DEBUG write it",
                       {.file = loaded.path});
  Json document = {{"backend", pytorch}, {"graphs", Json::array()}};
  bool met = false;
  for (const InductorCode& code : all) {
    Json graph = inductor_json(code);
    if (!o.json && o.show.empty()) fmt::print("{}", inductor_text(code));
    for (std::size_t i = 0; i < code.kernels.size() && !o.show.empty(); ++i) {
      const InductorKernel& k = code.kernels[i];
      if (!o.kernel.empty() && o.kernel != k.name) continue;
      met = true;
      if (o.json)
        graph["kernels"][i]["text"] = code.code_of(k);
      else
        fmt::print("# {} of {}\n{}\n", k.name, fmt::join(k.nodes, ", "), code.code_of(k));
    }
    document["graphs"].push_back(std::move(graph));
  }
  if (!o.show.empty() && !met) return input_error("kernels.kernel", "there is no kernel " + o.kernel);
  return o.json ? print_json(document) : 0;
}

Result<const KernelForm*> find_form(const StagedCompiler& compiler, const std::string& name) {
  std::vector<std::string> names;
  for (const KernelForm& form : compiler.forms) {
    if (form.name == name) return &form;
    names.push_back(form.name);
  }
  return input_error("kernels.show", fmt::format("no form {}; this backend has {}", name, fmt::join(names, ", ")));
}

/// Prints, or adds to the document, the code of the steps that are asked for.
Result<bool> show(const Options& o, const KernelForm& form, const PlannedGraph& graph, Json& steps) {
  bool met = false;
  std::optional<std::size_t> only;
  if (!o.kernel.empty() && !(only = find_step(graph.report, o.kernel))) return false;
  for (std::size_t s = 0; s < graph.report.rows.size(); ++s) {
    if (only && *only != s) continue;
    TRY(const std::optional<loops::LinkedText> code, form.text(graph.planned.second, s));
    if (!code) {
      if (only)
        return input_error("kernels.kernel", fmt::format("step {} is a call of {}, which has no code of its own", s,
                                                         graph.report.rows[s].name));
      continue;
    }
    met = true;
    if (!o.json) {
      fmt::print("{}: step {}\n{}\n", graph.report.graph, s, linked_text(*code, graph, s));
      continue;
    }
    Json lines = Json::array();
    for (const auto& nodes : code->lines) lines.push_back(nodes);
    steps[s]["code"] = {{"form", form.name}, {"text", code->text}, {"line_nodes", lines}};
  }
  return met;
}

Result<int> run(const Options& o) {
  if (!o.kernel.empty() && o.show.empty())
    return input_error("cli.usage", "--kernel chooses what --show prints; give --show, too");
  TRY(const Loaded loaded, load(o.request.path));
  if (o.backend == pytorch) return inductor(o, loaded);
  TRY(const Backend* backend, find_backend(o.backend));
  TRY(const Artefact* artefact, loaded.pick(o.request.graph));
  const bool runs = !o.request.inputs.empty() || o.request.random_weights;
  TensorFile io;
  if (runs) {
    TRY(io, read_io(o.request));
  }
  TRY(const std::vector<PlannedGraph> graphs, plan_kernels(*artefact, runs ? &io : nullptr, o.request, *backend));
  const StagedCompiler compiler = backend->stages({});
  const KernelForm* form = nullptr;
  if (!o.show.empty()) {
    TRY(form, find_form(compiler, o.show));
  }
  Json document = {{"backend", o.backend}, {"graph", artefact->id}, {"graphs", Json::array()}};
  bool met = false;
  for (const PlannedGraph& graph : graphs) {
    Json each = kernels_json(graph);
    if (!o.json && !form) fmt::print("{}", kernels_text(graph));
    if (form) {
      TRY(const bool shown, show(o, *form, graph, each["steps"]));
      met |= shown;
    }
    document["graphs"].push_back(std::move(each));
  }
  if (!o.kernel.empty() && !met) return input_error("kernels.kernel", "there is no kernel, step or node " + o.kernel);
  return o.json ? print_json(document) : 0;
}

}  // namespace

extern const Command kernels_command;
const Command kernels_command = {
    "kernels", "What a compiler makes of a graph: kernels and calls, their code, and memory over time",
    [](CLI::App& app) -> Action {
      auto o = std::make_shared<Options>();
      add_run_options(app, o->request);
      app.add_option("--backend", o->backend,
                     "a compiler, as `run --backend`; pytorch: what a log or debug folder has of inductor's")
          ->capture_default_str();
      app.add_option("--show", o->show,
                     "print code: loops, llvm or asm, lines with the nodes that they compute; of cuda-emulate: loops, "
                     "cuda, ptx, sass, or resources (registers, spills, memory, occupancy); of pytorch: code");
      app.add_option("--kernel", o->kernel, "only this one's code, by name, number of the step, or node");
      app.add_flag("--json", o->json, "one JSON document");
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli
