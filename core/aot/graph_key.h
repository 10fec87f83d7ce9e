#pragma once
#include <map>
#include <string>

#include "core/base/config.h"
#include "core/ir/graph.h"
#include "core/store/graph_entry.h"

namespace partita {

/// The parts of a cache's key that a graph decides: its text with its sub graphs', what that text leaves out of its
/// metas, ranges and guards of its symbols, and the values of its constants. Not for which sizes it is needed first:
/// what is compiled has guards. Names of nodes are a part, because errors name them; so are the lines of the model if
/// the graph has symbols, because guards name these.
KeyParts graph_parts(const Graph& graph);
/// Text that tells tensors from others, a line for each.
std::string text_of(const std::map<std::string, Tensor>& constants, const std::string& prefix = {});
/// The parts that are the same for every graph: this program and the rows of the configuration that decide code.
KeyParts common_parts(const Config& config);

}  // namespace partita
