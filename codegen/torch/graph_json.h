#pragma once
#include <functional>

#include <nlohmann/json.hpp>

#include "core/ir/graph.h"

namespace partita::torch {

/// A number as JSON has it; {"float": "nan"} for those that it lacks.
nlohmann::json number_json(double value);

/// Of an argument or a value: one that is no tensor, node or list; nullopt for these.
std::optional<nlohmann::json> constant_json(const auto& given) {
  if (given.is_none()) return nlohmann::json();
  if (const auto* b = given.template get<bool>()) return *b;
  if (const auto* n = given.template get<std::int64_t>()) return *n;
  if (const auto* x = given.template get<double>()) return number_json(*x);
  if (const auto* z = given.template get<std::complex<double>>())
    return nlohmann::json{{"complex", {number_json(z->real()), number_json(z->imag())}}};
  if (const auto* text = given.template get<std::string>()) return *text;
  if (const auto* dtype = given.template get<DType>()) return nlohmann::json{{"dtype", torch_name(*dtype)}};
  if (const auto* device = given.template get<Device>()) return nlohmann::json{{"device", device->str()}};
  if (const auto* layout = given.template get<Layout>()) return nlohmann::json{{"layout", torch_name(*layout)}};
  if (const auto* format = given.template get<MemoryFormat>())
    return nlohmann::json{{"memory_format", torch_name(*format)}};
  return std::nullopt;
}

/// A graph as data, which codegen/torch/worker/graphs.py builds: nodes with arguments, the sizes of inputs, sub graphs,
/// attributes as `describe` writes their tensors, and what it returns.
nlohmann::json graph_json(const Graph& graph, const std::function<nlohmann::json(const Tensor&)>& describe);

}  // namespace partita::torch
