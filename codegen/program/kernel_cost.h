#pragma once
#include <span>
#include <string>
#include <vector>

#include "codegen/program/program.h"
#include "core/loops/loop.h"
#include "core/loops/target.h"

namespace partita::codegen {

/// A rough count of the scalar operations of a run.
std::vector<ProgramKernel::Work> kernel_work(const loops::Kernel& kernel);

/// The structure of a kernel: kernels of equal text have equal machine code.
std::string kernel_text(const loops::Kernel& kernel);
/// Content address of the machine code of kernels: their structure, the processor, what of the target the emitter asks
/// for, and this compiler.
std::string code_key(std::span<const loops::Kernel> kernels, const std::vector<std::string>& symbols,
                     const loops::Target& target);

}  // namespace partita::codegen
