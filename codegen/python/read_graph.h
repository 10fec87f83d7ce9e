#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita::python {

/// The graph that the Python package writes (codegen/python/README.md). `attributes`: the tensors that it names, in
/// order. Error python.graph for other text; nothing in it is executed.
Result<std::unique_ptr<Graph>> read_graph(std::string_view json, const std::vector<Tensor>& attributes);

/// Does a call of it, or of a sub graph, draw random numbers?
bool draws_numbers(const Graph& graph);

/// A call that the compiler refuses, and why.
struct Refused {
  std::string node, op, why;
};
std::vector<Refused> find_refused(Graph& graph);

}  // namespace partita::python
