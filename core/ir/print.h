#pragma once
#include <string>
#include <string_view>

#include "core/ir/graph.h"

namespace partita {

struct PrintOptions {
  bool annotations = true;
  bool origins = true;    ///< "# File: ..." comments
  bool deletions = true;  ///< ";  x = None" after the last use
};

/// FX's own text, as GraphModule.print_readable writes it with strides and device. PyTorch executes it, and reading it
/// back gives the same graph.
std::string print(const Graph& graph, const PrintOptions& options = {});
/// One statement without indentation and deletions: addmm: "f32[8, 64][64, 1]cpu" = torch.ops.aten.addmm.default(...)
std::string print(const Node& node, const PrintOptions& options = {});
/// GraphModule.code: the bare function with its placeholders as flat parameters, without class, annotations and
/// comments.
std::string plain_code(const Graph& graph);
std::string_view name_of(Recompute tag);  ///< "MUST_SAVE", ...; empty for Unspecified
/// An argument as Python text: nodes by name, strings quoted, floats as repr prints them.
std::string print(const Arg& arg);

}  // namespace partita
