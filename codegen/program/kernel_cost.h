#pragma once
#include <string>
#include <vector>

#include "codegen/program/program.h"
#include "core/loops/loop.h"

namespace partita::codegen {

/// A rough count of the scalar operations of a run.
std::vector<ProgramKernel::Work> kernel_work(const loops::Kernel& kernel);

/// The structure of a kernel: kernels of equal text have equal machine code.
std::string kernel_text(const loops::Kernel& kernel);
}  // namespace partita::codegen
