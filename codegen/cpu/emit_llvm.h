#pragma once
#include <string>
#include <vector>

#include "codegen/cpu/kernel_shape.h"
#include "core/loops/target.h"

namespace llvm {
class DIBuilder;
class Module;
}  // namespace llvm

namespace partita::codegen {

/// Adds the functions of kernel_entry to the module. Precondition: check_kernel. `lines`: marks each instruction with
/// the source of the scalar that it computes, plus 1, as its line; null: unmarked.
void emit_kernel(llvm::Module& module, const loops::Kernel& kernel, const std::string& symbol,
                 const std::vector<std::string>& symbols, const loops::Target& target,
                 llvm::DIBuilder* lines = nullptr);

}  // namespace partita::codegen
