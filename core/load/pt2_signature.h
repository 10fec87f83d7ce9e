#pragma once
// Signature and tensors of a torch.export archive. Internal to core/load.
#include "core/load/program.h"
#include "core/load/pt2_json.h"
#include "core/load/zip.h"

namespace partita::pt2 {

/// Inputs and outputs of graph_module.signature.
Status read_signature(Json signature, Program& program);
/// The tensors a weights or constants config names; `folder` ends with "/". Names that share a file share storage.
/// What cannot be read (pickled custom objects) is reported in `warnings`.
Status read_tensors(const ZipArchive& zip, const std::string& folder, const std::string& config, Program& program,
                    std::vector<Diagnostic>& warnings);

}  // namespace partita::pt2
