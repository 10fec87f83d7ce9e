#pragma once
// The graph, signature and tensors of a torch.export archive. Internal to core/load.
#include <memory>

#include "core/ir/graph.h"
#include "core/load/export_signature.h"
#include "core/load/pt2_json.h"
#include "core/load/zip.h"

namespace partita::pt2 {

constexpr std::string_view unknown_dtype = "load.pt2.dtype";
/// Reads a tensor_meta entry. Hints of symbols go to `shapes` (may be null). Error unknown_dtype: of this tensor alone.
Result<TensorMeta> read_tensor_meta(Json json, ShapeEnv* shapes);

/// Reads a "graph" object with its sub graphs. `constant_names` has one entry per input: the placeholder's name for a
/// plain constant, empty for others. Only the signature has these names.
Result<std::unique_ptr<Graph>> read_graph(Json json, const std::string& name, std::shared_ptr<ShapeEnv> shapes,
                                          const std::vector<std::string>& constant_names, int depth = 0);

/// Reads a literal of an argument union (as_int, as_string, ...).
Result<Arg> read_literal(const Union& argument);

/// Reads the inputs and outputs of graph_module.signature.
Status read_signature(Json signature, ExportedProgram& program);
/// Reads the pytrees of graph_module.module_call_graph, as far as ExportedProgram can hold them.
void read_trees(Json graph_module, ExportedProgram& program);
/// Reads the tensors that a weights or constants config names. `folder` ends with "/". Names with the same file share
/// storage. `warnings` receives what cannot be read (pickled custom objects).
Status read_tensors(const ZipArchive& zip, const std::string& folder, const std::string& config,
                    ExportedProgram& program, std::vector<Diagnostic>& warnings);

}  // namespace partita::pt2
