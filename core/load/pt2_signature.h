#pragma once
// Signature and tensors of a torch.export archive. Internal to core/load.
#include "core/load/program.h"
#include "core/load/pt2_json.h"
#include "core/load/zip.h"

namespace partita::pt2 {

/// Reads the inputs and outputs of graph_module.signature.
Status read_signature(Json signature, ExportedProgram& program);
/// Reads the pytrees of graph_module.module_call_graph, as far as ExportedProgram can hold them.
void read_trees(Json graph_module, ExportedProgram& program);
/// Reads the tensors that a weights or constants config names. `folder` ends with "/". Names with the same file share
/// storage. `warnings` receives what cannot be read (pickled custom objects).
Status read_tensors(const ZipArchive& zip, const std::string& folder, const std::string& config,
                    ExportedProgram& program, std::vector<Diagnostic>& warnings);

}  // namespace partita::pt2
