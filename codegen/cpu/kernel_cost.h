#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/loops/loop.h"
#include "core/loops/target.h"

namespace partita::codegen {

/// A rough count of the scalar operations of a run. `value` gives the extents that no number is.
double kernel_work(const loops::Kernel& kernel, const std::function<std::int64_t(SymExpr)>& value);

/// Content address of the machine code of kernels: their structure, the processor, what of the target the emitter asks
/// for, and this compiler.
std::string code_key(std::span<const loops::Kernel> kernels, const std::vector<std::string>& symbols,
                     const loops::Target& target);

}  // namespace partita::codegen
