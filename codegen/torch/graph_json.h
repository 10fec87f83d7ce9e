#pragma once
#include <functional>

#include <nlohmann/json_fwd.hpp>

#include "core/ir/graph.h"

namespace partita::torch {

/// A graph as data, which codegen/torch/worker/graphs.py builds: nodes with arguments, the sizes of inputs, sub graphs,
/// attributes as `describe` writes their tensors, and what it returns.
nlohmann::json graph_json(const Graph& graph, const std::function<nlohmann::json(const Tensor&)>& describe);

/// A number as JSON has it; {"float": "nan"} for those that it lacks.
nlohmann::json number_json(double value);

}  // namespace partita::torch
