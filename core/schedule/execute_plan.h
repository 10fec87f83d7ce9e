#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/schedule/plan.h"
#include "core/tensor/value.h"

namespace partita::schedule {

/// Runs a plan with the reference executor of kernels and the operators' own evaluation of calls. Tests compare code
/// generators with it. Inputs have the strides that the plan asks for; sizes are concrete. `constants`:
/// Graph::attributes.
Result<std::vector<Value>> execute(const Plan& plan, const std::map<std::string, Tensor>& constants,
                                   const std::vector<Value>& inputs);

/// Returns a plan of the first `count` steps, which returns the memory that its last step wrote as flat tensors.
/// Precondition: 0 < count <= steps.
Plan first_steps(const Plan& plan, std::size_t count);
/// The name of a step, for people: "kernel 2 (tanh, mul)" or "aten.mm.default (mm_3)".
std::string step_name(const Plan& plan, std::size_t step);

}  // namespace partita::schedule
