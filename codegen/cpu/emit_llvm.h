#pragma once
#include <string>
#include <vector>

#include "codegen/cpu/kernel_shape.h"
#include "core/loops/target.h"

namespace llvm {
class Module;
}

namespace partita::codegen {

/// Adds the functions of kernel_entry to the module. Precondition: check_kernel.
void emit_kernel(llvm::Module& module, const loops::Kernel& kernel, const std::string& symbol,
                 const std::vector<std::string>& symbols, const loops::Target& target);

}  // namespace partita::codegen
