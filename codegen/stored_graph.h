#pragma once
// What the fxgraph_cache keeps of a compiled graph: PyTorch's CompiledFxGraph. Machine code is apart, under the key of
// its kernels, which several graphs may share.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/aot/stored_constants.h"
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

struct StoredGraph {
  struct Placeholder {
    std::string name, target, note;
    Meta meta;
  };
  struct Variant {
    bool symbolic = false;                      ///< its program has symbols
    std::map<std::string, std::int64_t> fixed;  ///< sizes that it has as numbers
    std::vector<Guard> guards;
    std::string program;  ///< codegen::program_bytes()
    std::string code;     ///< key of its machine code; empty without kernels
  };
  /// Of a graph that is cut at a call (schedule::SplitGraph): entries of their own have the parts.
  struct Split {
    std::string call;           ///< codegen::graph_bytes()
    std::string before, after;  ///< keys of the parts; there may be nothing before
    std::vector<std::size_t> before_inputs, call_inputs, after_inputs;
  };
  std::string name;
  std::vector<Placeholder> placeholders;
  std::optional<Split> split;
  bool knows_sizes = true;  ///< see CompiledGraph
  bool keeps_symbols = true;
  std::string why_not;  ///< why it does not
  std::vector<Variant> variants;
  std::vector<std::map<std::string, std::int64_t>> fitting;  ///< sizes with which inference takes the graph
  std::vector<Guard> guards;                                 ///< under which the passes made it
  StoredConstants constants;
};

Result<std::string> payload_bytes(StoredGraph graph);
/// Error cache.entry for other bytes.
Result<StoredGraph> read_stored_graph(std::string_view bytes);

/// The graph's placeholders, alone.
std::vector<StoredGraph::Placeholder> placeholders_of(const Graph& graph);
std::unique_ptr<Graph> signature(const std::string& name, const std::vector<StoredGraph::Placeholder>& placeholders);

}  // namespace partita
