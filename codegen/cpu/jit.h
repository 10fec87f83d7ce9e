#pragma once
#include <span>
#include <string>
#include <vector>

#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/kernel_shape.h"
#include "codegen/host/processor.h"
#include "codegen/program/kernel_code.h"

namespace partita::codegen {

struct JitOptions {
  loops::Target target = host_target();  ///< `threads` also compile, each its share of the kernels
  bool keep_text = false;                ///< LLVM IR and assembly
  bool mark_lines = false;               ///< mark the text's instructions with their scalars' sources, as debug lines
  Processor processor = host_processor();
  std::string prefix = {};  ///< of the functions' names: code for several processors may be linked into one library
};

/// Compiles kernels. kernel_entry(kernels[i], prefix + kernel_symbol(i)) names the functions of kernel i. `symbols` are
/// the names in the kernels' sizes, in the order in which their values are passed. Error codegen.cpu (exit 3).
Result<ObjectCode> compile_kernels(std::span<const loops::Kernel> kernels, const std::vector<std::string>& symbols,
                                   const JitOptions& options = {});
/// Assembles text in GNU syntax to a relocatable object for a library. Error codegen.assembly.
Result<std::string> assemble(const std::string& text);

}  // namespace partita::codegen
