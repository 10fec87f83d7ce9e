#pragma once
#include "core/dtensor/choose.h"
#include "core/ops/record/call.h"

namespace partita {

/// Calls that bring a rank's tensor to other placements, with the collectives of PyTorch. `whole`: the meta of the
/// whole tensor. fail_unsupported() where there is no way.
Node* redistribute(Builder& build, Node* local, const TensorMeta& whole, const Placements& from, const Placements& to,
                   const Mesh& mesh);

}  // namespace partita
