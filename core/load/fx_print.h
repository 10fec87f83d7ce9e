#pragma once
// Reads graphs that are printed node by node. Internal to core/load.
#include <memory>
#include <string_view>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita::fx {

/// Reads str(GraphModule.graph): "graph():", then a node in each line, with % before the names of nodes. Strings stand
/// there without quotes; a word that is nothing else is one. Errors load.fx_text with the line within the text.
Result<std::unique_ptr<Graph>> read_print(std::string_view text);

/// Reads what Graph.print_tabular prints. Of a Python function the table has only the last part of the name; it is the
/// one of torch that PyTorch traces under this name.
Result<std::unique_ptr<Graph>> read_table(std::string_view text);

}  // namespace partita::fx
