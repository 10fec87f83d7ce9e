#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Reads the first graph of the text in any form (see FxForm); of a repro script, the module that the others are parts
/// of. Skips other text around it. A call within a call becomes a node of its own, so hand-written text can be read as
/// well. Takes linear time. Errors load.fx_text name `file`, the line (the text starts at `first_line`), and what was
/// expected.
Result<std::unique_ptr<Graph>> parse_fx_text(std::string_view text, std::string_view file = {}, int first_line = 1);

/// The forms in which PyTorch prints a graph.
enum class FxForm : unsigned char {
  Module,  ///< class NAME(torch.nn.Module): GraphModule.print_readable, to_folder, repro scripts, trace logs
  Method,  ///< def forward(self, ...) alone: GraphModule.code
  Print,   ///< graph(): str(GraphModule.graph)
  Table,   ///< opcode  name  target ...: Graph.print_tabular
};

/// The place of one graph in a text.
struct FxSection {
  std::size_t begin = 0, end = 0;
  int line = 1;      ///< line number of its first line, 1-based
  std::string name;  ///< of the class; "forward", "graph" for the other forms
  FxForm form = FxForm::Module;
  /// What is the graph's of its lines, as (begin, size), newlines included, where something else stands before it (a
  /// prefix of a log, "> ", colours of a terminal). Empty: all from begin to end.
  std::vector<std::pair<std::size_t, std::size_t>> pieces;

  std::string text_of(std::string_view text) const;  ///< the graph alone
};
/// All graphs in the text, in order; empty when it holds none. A module that another one makes (self.NAME = CLASS() in
/// a repro script) is a part of that one, and not listed.
std::vector<FxSection> find_fx_graphs(std::string_view text);

}  // namespace partita
