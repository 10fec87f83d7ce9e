#pragma once
#include <memory>
#include <span>
#include <string>

#include "codegen/host/runtime.h"
#include "codegen/program/kernel_code.h"
#include "codegen/program/program.h"

namespace partita::codegen {

/// Loads objects into this process. `more`: functions that the code calls beside runtime_functions(). Error
/// codegen.link when objects are damaged or need an unknown function.
Result<std::unique_ptr<LoadedCode>> link_code(std::span<const std::string> objects,
                                              std::span<const RuntimeFunction> more = {});
/// The same, for a program: an error, too, when a function of a kernel is not there.
Result<std::unique_ptr<LoadedCode>> link_kernels(const Program& program, std::span<const std::string> objects,
                                                 std::span<const RuntimeFunction> more = {});

/// Prepares LLVM's code generator for this machine, once.
void prepare_llvm();

}  // namespace partita::codegen
