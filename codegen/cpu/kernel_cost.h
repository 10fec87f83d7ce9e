#pragma once
#include <span>
#include <string>

#include "core/loops/loop.h"
#include "core/loops/target.h"

namespace partita::codegen {

/// A rough count of the scalar operations of a run; unknown extents count as large.
double kernel_work(const loops::Kernel& kernel);

/// Content address of the machine code of kernels: their structure, the processor, what of the target the emitter asks
/// for, and this compiler.
std::string code_key(std::span<const loops::Kernel> kernels, const loops::Target& target);

}  // namespace partita::codegen
