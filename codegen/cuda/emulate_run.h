#pragma once
// Runs blocks of CUDA threads on this machine's CPU, and finds what a GPU would do wrong without a word.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/cpu/runtime.h"

namespace partita::codegen {

/// What an emulated function is told of its launch: the argument behind the kernel's own. It holds for one launch.
struct EmulatedLaunch {
  struct Memory {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
  };
  std::vector<Memory> memory;  ///< what the kernel's pointers point to, in order
  std::int64_t blocks = 0;

  std::atomic<bool> failed = false;  ///< set once, before `code` and `what`; read after the launch
  const char* code = "";             ///< "codegen.cuda_race", ..._barrier, ..._bounds, ..._alignment, ..._trap
  std::string what;                  ///< with threads, line and memory
};

/// What emulated code calls, for LoadedCode::link().
std::span<const RuntimeFunction> emulation_functions();

}  // namespace partita::codegen
