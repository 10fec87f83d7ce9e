#pragma once
// The gradients of collectives: the collective that brings each gradient back to where its value came from.
#include <vector>

#include "core/ops/record/record.h"

namespace partita {

// What autograd makes of a collective: another one, and a wait (torch.distributed._functional_collectives).
std::vector<Node*> all_reduce_gradient(GradCall& call);
std::vector<Node*> all_reduce_coalesced_gradient(GradCall& call);
std::vector<Node*> all_gather_gradient(GradCall& call);
std::vector<Node*> all_gather_coalesced_gradient(GradCall& call);
std::vector<Node*> reduce_scatter_gradient(GradCall& call);
std::vector<Node*> reduce_scatter_coalesced_gradient(GradCall& call);
std::vector<Node*> all_to_all_gradient(GradCall& call);

}  // namespace partita
