#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/meta.h"
#include "core/load/session.h"

namespace partita {

struct LoadArgs {
  std::vector<Meta> inputs;                   ///< in placeholder order; unknown where the script has no value
  std::map<std::string, std::int64_t> hints;  ///< of their symbols
  std::vector<std::string> storages;          ///< by input, the name of the file with its bytes; empty: there is none
};
/// The inputs that `def load_args(reader)` of a repro script or a fx_graph_runnable.py describes. Empty if the text has
/// no load_args or it is not understood; the graph then has only the metas of its own text.
LoadArgs read_load_args(std::string_view text);

/// What lies beside a repro script: its inputs' values (storages/NAME in its checkpoints folder), and the sub graphs
/// that torch 2.13 and older leave out of it, from the same graph in the debug folder. Only files below the script's
/// folder, or below that of its run (torch_compile_debug/run_.../minifier), are read. Null if the text is no script, or
/// there is nothing of it. What is there and damaged is told in `warnings`.
std::shared_ptr<const Companion> read_repro(const std::string& path, std::string_view text,
                                            std::vector<Diagnostic>& warnings);

/// The sub graphs that such a script in a log leaves out, from the same graph among the others of its compilation. Null
/// if it lacks none, or none of them is the same.
std::shared_ptr<const Companion> find_sub_graphs(std::string_view text, std::string_view group,
                                                 std::span<const Artefact> beside);

}  // namespace partita
