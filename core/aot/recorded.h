#pragma once
#include "core/base/result.h"
#include "core/load/safetensors.h"
#include "core/load/session.h"

namespace partita {

/// The inputs and results that a recording has of a graph's call. Results that no other run gives, because the graph
/// draws random numbers, are left out. Errors load.safetensors.*, load.recording, and those of reading the graph.
Result<TensorFile> recorded_values(const Artefact& artefact);

}  // namespace partita
