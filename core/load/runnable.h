#pragma once
#include <string_view>
#include <vector>

#include "core/ir/meta.h"

namespace partita {

/// The inputs that `def load_args(reader)` of a fx_graph_runnable.py describes, in placeholder order. Empty if the text
/// has no load_args or it is not understood; the graph then has only the metas of its own text.
std::vector<Meta> read_load_args(std::string_view text);

}  // namespace partita
