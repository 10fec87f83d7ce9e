#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/meta.h"

namespace partita {

struct LoadArgs {
  std::vector<Meta> inputs;                   ///< in placeholder order
  std::map<std::string, std::int64_t> hints;  ///< of their symbols
};
/// The inputs that `def load_args(reader)` of a fx_graph_runnable.py describes. Empty if the text has no load_args or
/// it is not understood; the graph then has only the metas of its own text.
LoadArgs read_load_args(std::string_view text);

}  // namespace partita
