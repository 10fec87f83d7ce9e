#pragma once
// Inputs for the graph texts of the corpus' models.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "core/load/fx_text.h"

namespace partita::testing {

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Graphs before autograd. Their strides depend on the grad mode in which they were traced: attention uses another
/// kernel when its mask requires grad.
inline bool above_autograd(const std::filesystem::path& graph) {
  const std::string stem = graph.stem().string();
  return stem == "dynamo" || stem == "exported" || stem.starts_with("pre_grad");
}

/// The graph, with an example value for each symbol.
inline Result<std::unique_ptr<Graph>> with_sizes(const std::filesystem::path& path) {
  TRY(std::unique_ptr<Graph> graph, parse_fx_text(text_of(path)));
  choose_sizes(*graph);
  for (const Node* n : *graph)  // constants, which text does not hold
    if (n->is(Op::get_attr()) && !graph->child(n->target)) {
      TRY(const Value made_up, random_value(n->meta, *graph->shapes, 1));
      if (const Tensor* t = made_up.get<Tensor>()) graph->attributes.emplace(n->target, *t);
    }
  return graph;
}

/// The value with the strides of `meta`, because PyTorch's compiler changes layouts between its graphs.
inline Value laid_out(const Value& value, const Meta& meta) {
  const Tensor* t = value.get<Tensor>();
  const TensorMeta* wanted = meta.tensor();
  if (!t || !wanted || !wanted->strides_known) return value;
  Sizes strides;
  for (SymExpr s : wanted->strides) {
    if (!s.is_int()) return value;
    strides.push_back(s.as_int());
  }
  const auto out = Tensor::empty_strided(t->dtype, t->sizes, strides);
  if (!out) return value;
  out->copy_from(*t);
  return *out;
}

/// Values by name returned by another graph of the folder, if it returns everything that `graph` takes except tangents.
inline std::map<std::string, Value> from_forward(const std::filesystem::path& path, const Graph& graph) {
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path())) {
    if (entry.path() == path || entry.path().extension() != ".py" || above_autograd(entry.path())) continue;
    const auto forward = with_sizes(entry.path());
    if (!forward) continue;
    const std::vector<Arg> returned = (*forward)->outputs();
    std::set<std::string> names;
    for (const Arg& a : returned)
      if (a.node()) names.insert(a.node()->name());
    const bool all = std::ranges::all_of(graph.placeholders(), [&](const Node* p) {
      return p->name().starts_with("tangents_") || names.contains(p->name());
    });
    if (!all) continue;
    const auto inputs = partita::random_inputs(**forward, 1);
    if (!inputs) continue;
    const auto outputs = interpret(**forward, *inputs);
    if (!outputs) continue;
    std::map<std::string, Value> values;
    for (std::size_t i = 0; i < returned.size(); ++i)
      if (returned[i].node()) values[returned[i].node()->name()] = (*outputs)[i];
    return values;
  }
  return {};
}

/// Random inputs; those of a backward are the values that the forward beside it returns under their names.
inline Result<std::vector<Value>> model_inputs(const std::filesystem::path& path, const Graph& graph) {
  TRY(std::vector<Value> inputs, partita::random_inputs(graph, 1));
  const std::vector<Node*> placeholders = graph.placeholders();
  const auto saved = from_forward(path, graph);
  for (std::size_t i = 0; i < placeholders.size(); ++i)
    if (auto it = saved.find(placeholders[i]->name()); it != saved.end())
      inputs[i] = laid_out(it->second, placeholders[i]->meta);
  return inputs;
}

}  // namespace partita::testing
