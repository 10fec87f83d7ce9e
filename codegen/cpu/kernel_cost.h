#pragma once
#include <span>
#include <string>

#include "core/loops/loop.h"

namespace partita::codegen {

/// A rough count of the scalar operations of a run; unknown extents count as large.
double kernel_work(const loops::Kernel& kernel);

/// The content address of kernels' machine code: it depends on their structure, the processor and this compiler.
std::string code_key(std::span<const loops::Kernel> kernels);

}  // namespace partita::codegen
