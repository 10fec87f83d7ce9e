#pragma once
#include <string_view>
#include <vector>

#include "core/ir/meta.h"

namespace partita {

/// What `def load_args(reader)` of a fx_graph_runnable.py says of the inputs, in placeholder order; empty when the text
/// has none or it is not understood (the graph then stays without metas, as its own text is).
std::vector<Meta> read_load_args(std::string_view text);

}  // namespace partita
