#pragma once
#include <string>
#include <vector>

#include "codegen/cpu/kernel_shape.h"

namespace llvm {
class Module;
}

namespace partita::codegen {

struct EmitTarget {
  int vector_bytes = 32;  ///< bytes of a vector register of the host: 64 with AVX-512
};

/// Adds the functions of kernel_entry to the module. Precondition: check_kernel.
void emit_kernel(llvm::Module& module, const loops::Kernel& kernel, const std::string& symbol,
                 const std::vector<std::string>& symbols, const EmitTarget& target);

}  // namespace partita::codegen
