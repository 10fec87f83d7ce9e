#pragma once
#include <vector>

#include "core/schedule/plan.h"

namespace partita::codegen {

/// The pointwise work on a call's result as a kernel over it, in place, for calls whose library does not do it.
/// `buffers`: the plan's, for each of the kernel's. Errors codegen.dynamic, codegen.epilogue (exit 3).
Result<loops::Kernel> epilogue_kernel(const schedule::Plan& plan, const schedule::ExternCall& call,
                                      std::vector<int>& buffers);

}  // namespace partita::codegen
