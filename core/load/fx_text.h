#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Reads the first FX module in the text: what GraphModule.print_readable, GraphModule.code, to_folder (module.py),
/// fx_graph_runnable.py and trace logs hold. Other Python around the class is skipped. Linear in the text.
/// A call within a call becomes a node of its own, so hand-written text reads as well. `file` and `first_line` are for
/// errors (load.fx_text, with the line and what was expected).
Result<std::unique_ptr<Graph>> parse_fx_text(std::string_view text, std::string_view file = {}, int first_line = 1);

/// Where FX modules stand in a text.
struct FxSection {
  std::size_t begin = 0, end = 0;
  int line = 1;           ///< of its class line, 1-based
  std::string_view name;  ///< the class
};
/// Every top-level class with a forward method, in order; empty when the text holds no graph.
std::vector<FxSection> find_fx_modules(std::string_view text);

}  // namespace partita
