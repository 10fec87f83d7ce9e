#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

/// A copy without what tells where the graph comes from: origins, notes, and a name that is no Python identifier.
std::unique_ptr<Graph> plain_copy(const Graph& graph);
/// The text of a graph in such a folder.
std::string case_text(const Graph& graph);
/// Writes a graph with values for its placeholders into a folder that exists, so that `partita run` can open it:
/// graph.py (FX text), inputs.safetensors (input.N, constant.NAME) and, if every input is a tensor or a number,
/// graph.input (the pickle for torch._functorch's get_inputs).
Status write_case(const Graph& graph, const std::vector<Value>& inputs, const std::string& folder);

/// The meta of a value; unknown if it is neither a tensor nor an integer.
Meta meta_of(const Value& value);

}  // namespace partita
