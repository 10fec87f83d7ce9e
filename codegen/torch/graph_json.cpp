#include "codegen/torch/graph_json.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "core/ir/fx_dot.h"

namespace partita::torch {

using nlohmann::json;

json number_json(double value) {
  if (std::isfinite(value)) return value;
  return {{"float", std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"}};
}

namespace {

json items_json(const std::vector<Arg>& items);

json arg_json(const Arg& arg) {
  if (arg.is_none()) return nullptr;
  if (const auto* b = arg.get<bool>()) return *b;
  if (const auto* n = arg.get<std::int64_t>()) return *n;
  if (const auto* x = arg.get<double>()) return number_json(*x);
  if (const auto* z = arg.get<std::complex<double>>())
    return {{"complex", {number_json(z->real()), number_json(z->imag())}}};
  if (const auto* text = arg.get<std::string>()) return *text;
  if (const Node* node = arg.node()) return {{"node", node->name()}};
  if (const auto* dtype = arg.get<DType>()) return {{"dtype", torch_name(*dtype)}};
  if (const auto* device = arg.get<Device>()) return {{"device", device->str()}};
  if (const auto* layout = arg.get<Layout>()) return {{"layout", torch_name(*layout)}};
  if (const auto* format = arg.get<MemoryFormat>()) return {{"memory_format", torch_name(*format)}};
  if (const auto* slice = arg.get<ArgSlice>()) return {{"slice", items_json(slice->parts)}};
  if (const auto* name = arg.get<ArgName>()) return {{"name", name->text}};
  if (const auto* dict = arg.get<ArgDict>()) {
    json items = json::array();
    for (const auto& [key, item] : dict->items) items.push_back({key, arg_json(item)});
    return {{"dict", std::move(items)}};
  }
  const auto* list = arg.get<ArgList>();
  json items = items_json(list->items);
  return list->is_tuple ? json{{"tuple", std::move(items)}} : items;
}

json items_json(const std::vector<Arg>& items) {
  json out = json::array();
  for (const Arg& item : items) out.push_back(arg_json(item));
  return out;
}

/// The sizes of an input; a text is a symbol or more.
json meta_json(const Meta& meta) {
  const auto size = [](const SymExpr& e) { return e.is_int() ? json(e.as_int()) : json(e.str()); };
  if (const SymExpr* sym = meta.sym(); sym && !sym->is_int()) return {{"sym", sym->str()}};
  const TensorMeta* t = meta.tensor();
  if (!t) return nullptr;
  json sizes = json::array();
  for (const SymExpr& e : t->sizes) sizes.push_back(size(e));
  return {{"sizes", std::move(sizes)}};
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
      described["args"] = items_json(node->args());
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
