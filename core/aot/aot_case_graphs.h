#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/load/safetensors.h"
#include "core/load/session.h"

namespace partita {

/// The graphs of an AOTAutograd case (`recorded`: "aot" in its case.json) against PyTorch's in the folder: metadata
/// (ViewAndMutationMeta) and texts (joint, forward and backward by the default and by the min-cut partitioner, forward
/// without writes in the graph). One line per difference; empty when all are the same. `io`: the inputs; `is_leaf`: by
/// input.
struct CaseGraphs {
  std::vector<std::string> metadata, texts;
};
Result<CaseGraphs> compare_case_graphs(const std::string& folder, const nlohmann::json& recorded,
                                       const Artefact& artefact, const TensorFile& io,
                                       const std::vector<bool>& is_leaf);

}  // namespace partita
