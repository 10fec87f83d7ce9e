#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/run_options.h"
#include "app/standard_streams.h"
#include "app/tasks/graph_of_rank.h"
#include "app/tasks/run_artefact.h"
#include "core/aot/export_module.h"
#include "core/aot/graph_io.h"
#include "core/base/assign.h"
#include "core/base/output.h"
#include "core/ir/print.h"
#include "core/load/session.h"

namespace partita::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ExportVerbOptions {
  std::string path, graph, inputs, output;
  ExportOptions how;
  bool joint_simple = false, json = false;
};

Json as_json(const NameMap& map) {
  Json out = Json::object();
  for (const auto& [name, meaning] : map) out[name] = meaning;
  return out;
}

Json as_json(const std::optional<std::string>& name) {
  return name ? Json(*name) : Json();
}

Json as_json(const GraphSignature& s) {
  Json users = Json::array();
  for (const auto& name : s.user_outputs) users.push_back(as_json(name));
  Json backward;
  if (s.backward)
    backward = {{"gradients_to_parameters", as_json(s.backward->gradients_to_parameters)},
                {"gradients_to_user_inputs", as_json(s.backward->gradients_to_user_inputs)},
                {"loss_output", as_json(s.backward->loss_output)}};
  return {{"parameters", s.parameters},
          {"buffers", s.buffers},
          {"user_inputs", s.user_inputs},
          {"user_outputs", users},
          {"inputs_to_parameters", as_json(s.inputs_to_parameters)},
          {"inputs_to_buffers", as_json(s.inputs_to_buffers)},
          {"buffers_to_mutate", as_json(s.buffers_to_mutate)},
          {"parameters_to_mutate", as_json(s.parameters_to_mutate)},
          {"user_inputs_to_mutate", as_json(s.user_inputs_to_mutate)},
          {"in_spec", s.in_spec},
          {"out_spec", s.out_spec},
          {"backward_signature", backward},
          {"input_tokens", Json::array()},
          {"output_tokens", Json::array()}};
}

/// Text that is no UTF-8 is shown with U+FFFD in its place.
std::string text_of(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status write_export(const std::string& code, const Json& facts, const std::filesystem::path& folder) {
  TRY_DO(make_folder(folder.string()));
  TRY_DO(write_file((folder / "graph.py").string(), code));
  return write_file((folder / "signature.json").string(), text_of(facts));
}

Result<int> run(const ExportVerbOptions& o) {
  TRY(const Loaded loaded, load(o.path));
  TRY(const Artefact artefact, pick_of_rank(loaded, o.graph));
  TRY(const std::unique_ptr<Graph> graph, artefact.graph());
  std::optional<TensorFile> io;
  if (!o.inputs.empty()) TRY_DO(assign(io, read_inputs(o.inputs)));
  const TensorFile* given = io ? &*io : nullptr;
  std::string code;
  Json signature, loss;
  if (o.joint_simple) {
    TRY(const auto made, export_joint_simple(*graph, artefact.program.get(), given, o.how));
    code = print(*made);
  } else {
    TRY(const auto made, export_module(*graph, artefact.program.get(), given, o.how));
    code = print(*made.graph);
    signature = as_json(made.signature);
    if (made.signature.backward) loss = made.signature.backward->loss;
  }
  if (!o.output.empty()) TRY_DO(write_export(code, {{"signature", signature}, {"loss", loss}}, o.output));
  if (o.json)
    fmt::print("{}", text_of({{"graph", code}, {"signature", signature}, {"loss", loss}}));
  else
    fmt::print("{}", code);
  return 0;
}

}  // namespace

extern const Command export_command = {
    "export", "Make the functional graph of a module, with its signature, as aot_export_module",
    [](CLI::App& app) -> Action {
      auto o = std::make_shared<ExportVerbOptions>();
      add_graph_options(app, o->path, o->graph)->required();
      auto* joint = app.add_flag("--trace-joint", o->how.trace_joint, "the gradients of the loss too, in one graph");
      auto* loss =
          app.add_option("--loss-index", o->how.loss_index, "which output is the loss, counted from 0")->needs(joint);
      auto* pre_dispatch =
          app.add_flag("--pre-dispatch", o->how.pre_dispatch, "keep composite operators and changes of the grad mode");
      app.add_flag("--joint-simple", o->joint_simple,
                   "as aot_export_joint_simple: no signature, and what would need a wrapper is refused")
          ->excludes(loss)
          ->excludes(pre_dispatch);
      app.add_option("--inputs", o->inputs,
                     "safetensors file: which inputs require grad, share memory, and on which device they are");
      app.add_flag("--json", o->json, "one JSON document: graph, signature, loss");
      app.add_option("-o,--output", o->output, "folder for graph.py and signature.json")->check(output_folder());
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli
