#pragma once
#include <string>
#include <vector>

#include "core/schedule/plan.h"

namespace partita::schedule {

/// The broken rules of a plan with concrete sizes; empty when there are none. What a step or an output reads is an
/// input, a constant, or written by an earlier step. Views end within their buffers. Temporaries lie in the arena; of
/// two that share bytes, one is not read after the other was written. Outputs have the dtypes, sizes and strides that
/// their metas promise.
std::vector<std::string> verify(const Plan& plan);

}  // namespace partita::schedule
