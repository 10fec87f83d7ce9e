#pragma once
#include <string>
#include <vector>

#include "core/schedule/plan.h"

namespace partita::schedule {

/// Broken rules of a plan with concrete sizes, empty when it is sound: what a step reads is an input, a constant or
/// written by an earlier step, and so is every output; views end within their buffers; temporaries lie in the arena,
/// and of two that share bytes nobody reads the one after the other is written.
std::vector<std::string> verify(const Plan& plan);

}  // namespace partita::schedule
