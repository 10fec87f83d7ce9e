#pragma once
// The cache of what AOTAutograd makes of a program: PyTorch's AOTAutogradCache. An entry names the compiled graphs,
// which the compiler's own cache has (FxGraphCache), and has what runs of them need besides.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/aot/aot.h"
#include "core/aot/run_compiled.h"
#include "core/aot/stored_constants.h"
#include "core/store/graph_entry.h"

namespace partita {

class CodeStore;

/// Makes a graph anew, when what a cache has of it does not suffice.
using GraphSource = std::function<Result<std::unique_ptr<Graph>>()>;

/// A compiler's cache.
struct GraphCache {
  std::shared_ptr<CodeStore> store;
  Config config;
  std::string compiler;  ///< what else decides its code, as text: the machine, its options
  /// The key under which it keeps a graph that it compiles.
  std::function<std::string(const Graph&)> key;
  /// A graph that it compiled before; nullopt when it has none. `constants`: the attributes of the graph.
  std::function<std::optional<CompiledFn>(const std::string& key, std::map<std::string, Tensor> constants,
                                          GraphSource source)>
      load;
};

/// What a run needs of AOTAutograd's graphs besides compiled code.
struct AotSummary {
  ViewAndMutationMeta meta;
  std::vector<std::size_t> tangent_of;  ///< as AotGraphs has it
  std::vector<Meta> tangents;           ///< metas of the backward's tangents
  std::vector<std::size_t> frozen;
  std::size_t inputs = 0;  ///< of the forward, before a random seed and offset, and results of constants

  static AotSummary of(const AotGraphs& graphs);
};

struct AotEntry {
  AotSummary summary;
  std::vector<Guard> guards;  ///< for which sizes AOTAutograd's graphs are right
  std::string wrappers;       ///< as JSON
  std::string forward;        ///< keys in the compiler's cache
  std::optional<std::string> backward = {};
  StoredConstants forward_constants = {}, backward_constants = {};
  std::string constants = {};  ///< the text of AotGraphs::constants; empty: none
  std::vector<std::size_t> constant_inputs = {};
  StoredConstants constants_constants = {};  ///< its attributes
};

/// Why the graph cannot be kept, in PyTorch's words; nullopt when it can.
std::optional<std::string> why_not_cached(const Graph& graph, const AotOptions& options);
/// The key's parts. `graph`: as wrap_inputs() left it, so that inputs in one memory have one storage_id.
KeyParts autograd_key(const Graph& graph, const ExportedProgram* program, const AotOptions& options, bool lazy_backward,
                      const GraphCache& cache);
Result<std::string> payload_bytes(AotEntry entry);  ///< what read_aot_entry() reads
/// Error cache.entry for other bytes.
Result<AotEntry> read_aot_entry(std::string_view bytes);

}  // namespace partita
