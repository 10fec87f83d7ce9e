#pragma once
#include "codegen/cpu/extern/routines.h"

namespace partita::codegen {

/// Has the processor instructions that multiply such halves?
bool multiplies(DType half);
/// Has the call a narrow matrix, or halves that this processor has no instructions to multiply?
bool belongs_in_floats(const schedule::ExternCall& call);

/// Prepares a call that belongs in floats: its operands are widened before, fixed ones once, unless `prepare` takes
/// them among floats, and its results narrowed after. The step is null, with the reason, where the call has no halves
/// or `prepare` refuses the one on floats.
Prepared prepare_in_floats(const ExternContext& context, PrepareFunction prepare, std::string& why_not);

}  // namespace partita::codegen
