#include "codegen/torch/graph_json.h"

#include <cmath>

#include "core/base/mapped.h"
#include "core/ir/fx_dot.h"

namespace partita::torch {

using nlohmann::json;

json number_json(double value) {
  if (std::isfinite(value)) return value;
  return {{"float", std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"}};
}

namespace {

json arg_json(const Arg& arg) {
  if (auto constant = constant_json(arg)) return *std::move(constant);
  if (const Node* node = arg.node()) return {{"node", node->name()}};
  if (const auto* slice = arg.get<ArgSlice>()) return {{"slice", mapped(slice->parts, arg_json)}};
  if (const auto* name = arg.get<ArgName>()) return {{"name", name->text}};
  if (const auto* dict = arg.get<ArgDict>()) {
    json items = json::array();
    for (const auto& [key, item] : dict->items) items.push_back({key, arg_json(item)});
    return {{"dict", std::move(items)}};
  }
  const auto* list = arg.get<ArgList>();
  json items = mapped(list->items, arg_json);
  return list->is_tuple ? json{{"tuple", std::move(items)}} : items;
}

/// The sizes of an input; a text is a symbol or more.
json meta_json(const Meta& meta) {
  const auto size = [](const SymExpr& e) { return e.is_int() ? json(e.as_int()) : json(e.str()); };
  if (const SymExpr* sym = meta.sym(); sym && !sym->is_int()) return {{"sym", sym->str()}};
  const TensorMeta* t = meta.tensor();
  if (!t) return nullptr;
  return {{"sizes", mapped(t->sizes, size)}};
}

}  // namespace

json graph_json(const Graph& graph, const std::function<json(const Tensor&)>& describe) {
  json nodes = json::array();
  for (const Node* node : graph) {
    if (node->is_output()) continue;
    json described = {{"name", node->name()},
                      {"op", node->op()->kind == OpKind::Torch ? "call_operator" : fx_kind(*node)}};
    if (node->op()->is_call()) {
      described["target"] = node->op()->name;
      described["args"] = mapped(node->args(), arg_json);
      for (const auto& [key, arg] : node->kwargs()) described["kwargs"][key] = arg_json(arg);
    } else if (node->is_placeholder()) {
      described["meta"] = meta_json(node->meta);
    } else {
      described["target"] = node->target;
    }
    nodes.push_back(std::move(described));
  }
  const Node* output = graph.output();
  json out = {{"nodes", std::move(nodes)},
              {"output", output && !output->args().empty() ? arg_json(output->args()[0]) : json()}};
  for (const auto& [name, tensor] : graph.attributes) out["attributes"][name] = describe(tensor);
  for (const auto& [name, child] : graph.children) out["children"][name] = graph_json(*child, describe);
  return out;
}

}  // namespace partita::torch
