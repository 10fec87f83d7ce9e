#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/own_picture.h"
#include "app/standard_streams.h"
#include "app/tasks/graphviz.h"
#include "app/tasks/notes.h"
#include "app/tasks/symbols_json.h"
#include "core/base/mapped.h"
#include "core/base/output.h"
#include "core/fake/propagate.h"
#include "core/ir/fx_dot.h"
#include "core/ir/print.h"
#include "core/load/session.h"

namespace partita::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ShowVerbOptions {
  std::string path, graph, format = "text", output;
};

Json to_json(const StackFrame& frame) {
  return {{"file", frame.file}, {"line", frame.line}, {"function", frame.function}, {"code", frame.code}};
}

Json to_json(const Node& node, const Notes& notes) {
  Json out = {{"name", node.name()}, {"kind", fx_kind(node)}};
  if (node.op()->is_call()) out["op"] = (node.op()->kind == OpKind::Torch ? "torch.ops." : "") + node.op()->name;
  if (!node.target.empty()) out["target"] = node.target;
  Json args = Json::array(), kwargs = Json::object();
  for (const Arg& a : node.args()) args.push_back(print(a));
  for (const auto& [key, value] : node.kwargs()) kwargs[key] = print(value);
  if (!args.empty()) out["args"] = args;
  if (!kwargs.empty()) out["kwargs"] = kwargs;
  if (auto inputs = node.inputs(); !inputs.empty()) out["inputs"] = mapped(inputs, &Node::name);
  if (std::string type = annotation(node.meta); !type.empty()) out["meta"] = type;
  if (!node.note.empty()) out["note"] = node.note;
  if (node.origin && !node.origin->file.empty()) {
    out["origin"] = to_json(*node.origin);
    if (node.origin->caller) out["origin"]["caller"] = to_json(*node.origin->caller);
  }
  if (node.origin && !node.origin->modules.empty()) out["module"] = node.origin->modules;
  if (const auto note = notes.find(node.name()); note != notes.end()) out["user_note"] = note->second;
  return out;
}

Json to_json(const Graph& graph, const Notes& notes) {
  Json nodes = Json::array(), children = Json::object();
  for (Node* node : graph) nodes.push_back(to_json(*node, notes));
  for (const auto& [target, child] : graph.children) children[target] = to_json(*child, {});
  Json out = {{"name", graph.name}, {"form", graph.form == GraphForm::Joint ? "joint" : "flat"}, {"nodes", nodes}};
  if (!children.empty()) out["children"] = children;
  return out;
}

Result<std::string> render(const std::string& path, const Artefact& artefact, const std::string& format) {
  if (!artefact.is_graph()) {
    if (format == "text") return artefact.text();
    return input_error("cli.usage", fmt::format("'{}' is text; only --format text shows it", artefact.id));
  }
  TRY(auto graph, artefact.graph());
  if (format == "text") return print(*graph);
  if (format == "json") {
    const auto notes = notes_of(path, artefact.id);
    if (!notes) std::fprintf(stderr, "partita: warning: no notes: %s\n", notes.error().line().c_str());
    Json out = to_json(*graph, notes ? *notes : Notes());
    // Guards come from computing the sizes anew.
    if (const auto computed = propagate(*graph->clone()); !computed)
      out["sizes_not_computed"] = computed.error().line();
    add_symbols(out, *graph->shapes);
    return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return format != "dot" && !fits_graphviz(*graph) ? own_picture(*graph, format) : draw_with_graphviz(*graph, format);
}

Result<int> show(const ShowVerbOptions& options) {
  TRY(Loaded loaded, load(options.path));
  // Of a file that holds no graph, its first text.
  const bool is_text = options.graph.empty() && std::ranges::none_of(loaded.artefacts, &Artefact::is_graph);
  TRY(const Artefact* artefact, is_text ? &loaded.artefacts.front() : loaded.pick(options.graph));
  TRY(std::string text, render(options.path, *artefact, options.format));
  for (const Diagnostic& w : loaded.warnings)
    std::fprintf(stderr, "partita: %s: %s\n", w.severity == Severity::Note ? "note" : "warning", w.line().c_str());
  if (!options.output.empty()) {
    TRY_DO(write_file(options.output, text));
    return 0;
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

Action add_show(CLI::App& app) {
  auto options = std::make_shared<ShowVerbOptions>();
  app.add_option("path", options->path, "File or folder")->required();
  app.add_option("--graph", options->graph,
                 "Id of the graph, as partita list shows it, its end or its kind; not needed when there is only one");
  app.add_option("--format", options->format, "text, dot, svg, png, pdf or json")
      ->check(CLI::IsMember({"text", "dot", "svg", "png", "pdf", "json"}));
  app.add_option("-o,--output", options->output, "File to write instead of standard output, which - is too")
      ->check(output_file());
  return [options] { return show(*options); };
}

}  // namespace

extern const Command show_command = {"show", "One graph as FX text, Graphviz source, picture or JSON", add_show};

}  // namespace partita::cli
