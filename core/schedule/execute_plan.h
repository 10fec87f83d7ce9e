#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/schedule/plan.h"
#include "core/tensor/value.h"

namespace partita::schedule {

/// Runs a plan with the reference executor of kernels and the operators' own evaluation of calls: what a code generator
/// is held against. Inputs have the strides that the plan wants, sizes are concrete. `constants`: Graph::attributes.
Result<std::vector<Value>> execute(const Plan& plan, const std::map<std::string, Tensor>& constants,
                                   const std::vector<Value>& inputs);

/// The plan that ends after `count` steps and returns the memory its last step wrote, as flat tensors. Precondition:
/// 0 < count <= steps.
Plan first_steps(const Plan& plan, std::size_t count);
/// What a step is, for people: "kernel 2 (tanh, mul)" or "aten.mm.default (mm_3)".
std::string step_name(const Plan& plan, std::size_t step);

}  // namespace partita::schedule
