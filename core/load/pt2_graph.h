#pragma once
// The graph of a torch.export archive. Internal to core/load.
#include <memory>

#include "core/ir/graph.h"
#include "core/load/pt2_json.h"

namespace partita::pt2 {

constexpr std::string_view unknown_dtype = "load.pt2.dtype";
/// Reads a tensor_meta entry. Hints of symbols go to `shapes` (may be null). Error unknown_dtype: of this tensor alone.
Result<TensorMeta> read_tensor_meta(Json json, ShapeEnv* shapes);

/// Reads a "graph" object with its sub graphs. `constant_names` has one entry per input: the placeholder's name for a
/// plain constant, empty for others. Only the signature has these names.
Result<std::unique_ptr<Graph>> read_graph(Json json, const std::string& name, std::shared_ptr<ShapeEnv> shapes,
                                          const std::vector<std::string>& constant_names, int depth = 0);

/// Reads a literal of an argument union (as_int, as_string, ...).
Result<Arg> read_literal(const Union& argument);

}  // namespace partita::pt2
