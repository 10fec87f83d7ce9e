#pragma once
#include <memory>
#include <span>
#include <string>

#include "codegen/host/runtime.h"
#include "codegen/program/kernel_code.h"

namespace partita::codegen {

/// Loads the small objects that our own code generator makes for x86-64, in a tenth of a millisecond, where LLVM's
/// linker takes tens of milliseconds to be set up. Null for objects that it does not know all about: of other
/// processors, with other sections or relocations, or damaged.
std::unique_ptr<LoadedCode> link_elf(std::span<const std::string> objects, std::span<const RuntimeFunction> more = {});

}  // namespace partita::codegen
