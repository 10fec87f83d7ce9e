#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Reads the first FX module in the text, as GraphModule.print_readable, GraphModule.code, to_folder (module.py),
/// fx_graph_runnable.py and trace logs write it. Skips other Python code around the class. A call within a call becomes
/// a node of its own, so hand-written text can be read as well. Takes linear time. Errors load.fx_text name `file`, the
/// line (the text starts at `first_line`), and what was expected.
Result<std::unique_ptr<Graph>> parse_fx_text(std::string_view text, std::string_view file = {}, int first_line = 1);

/// The place of one FX module in a text.
struct FxSection {
  std::size_t begin = 0, end = 0;
  int line = 1;           ///< line number of its class statement, 1-based
  std::string_view name;  ///< name of the class
};
/// All top-level classes with a forward method, in order; empty when the text holds no graph.
std::vector<FxSection> find_fx_modules(std::string_view text);

}  // namespace partita
