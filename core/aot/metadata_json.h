#pragma once
#include <nlohmann/json_fwd.hpp>

#include "core/aot/aot.h"

namespace partita {

/// ViewAndMutationMeta with PyTorch's names for its fields: input_info, output_info, num_intermediate_bases,
/// mutated_inp_runtime_indices, num_outputs_aliased, num_forward, traced_tangents_descs, static_input_indices, ...
nlohmann::ordered_json metadata_json(const AotGraphs& graphs);

}  // namespace partita
