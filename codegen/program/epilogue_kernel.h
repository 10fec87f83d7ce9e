#pragma once
#include <vector>

#include "core/schedule/plan.h"

namespace partita::codegen {

/// Makes a kernel of the pointwise work on a call's result, in place, for libraries that cannot do it. `buffers`
/// receives the plan's buffer for each of the kernel's. Errors codegen.dynamic, codegen.epilogue (exit 3).
Result<loops::Kernel> epilogue_kernel(const schedule::Plan& plan, const schedule::ExternCall& call,
                                      std::vector<int>& buffers);

}  // namespace partita::codegen
