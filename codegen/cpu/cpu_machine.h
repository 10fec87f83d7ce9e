#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/program/machine.h"

namespace partita::codegen {

/// The CPU of this machine: kernels by LLVM, calls by oneDNN and kernels of our own.
std::shared_ptr<const Machine> cpu_machine();

/// Content address of the machine code of kernels: their structure, the processor, what of the target the emitter asks
/// for, and this compiler.
std::string code_key(std::span<const loops::Kernel> kernels, const std::vector<std::string>& symbols,
                     const loops::Target& target);

}  // namespace partita::codegen
