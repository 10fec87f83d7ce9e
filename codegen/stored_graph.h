#pragma once
// What the fxgraph_cache keeps of a compiled graph: PyTorch's CompiledFxGraph. Machine code is apart, under the key of
// its kernels, which several graphs may share.
#include <cstdint>
#include <map>
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
  std::string name;
  std::vector<Placeholder> placeholders;
  bool keeps_symbols = true;
  std::string why_not;  ///< why it does not
  std::vector<Variant> variants;
  std::vector<std::map<std::string, std::int64_t>> fitting;  ///< sizes with which inference takes the graph
  StoredConstants constants;
};

Result<std::string> payload_bytes(StoredGraph graph);
/// Error cache.entry for other bytes.
Result<StoredGraph> read_stored_graph(std::string_view bytes);

/// The graph's placeholders, alone.
std::vector<StoredGraph::Placeholder> placeholders_of(const Graph& graph);
std::unique_ptr<Graph> signature(const std::string& name, const std::vector<StoredGraph::Placeholder>& placeholders);

}  // namespace partita
