#pragma once
// Runs blocks of CUDA threads on this machine's CPU, and finds what a GPU would do wrong without a word.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/cuda/memory_check.h"
#include "codegen/host/runtime.h"

namespace partita::codegen {

/// What an emulated function is told of its launch: the argument behind the kernel's own. It holds for one launch.
struct EmulatedLaunch {
  struct Memory {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
    // As the kernel says it, when its first block runs.
    std::string_view name = {};
    unsigned item = 0;                        ///< bytes of an element
    std::shared_ptr<MemoryCheck> check = {};  ///< null: the kernel only reads it, or it is too much to check
  };
  std::vector<Memory> memory;  ///< what the kernel's pointers point to, in order
  std::int64_t blocks = 0;

  /// Before each function of a kernel: it begins when all blocks of the one before have ended.
  void begin(std::int64_t count) {
    blocks = count;
    described = false;
  }
  std::mutex lock;         ///< of what its first block does
  bool described = false;  ///< are `name`, `item` and `check` set?

  std::atomic<bool> failed = false;  ///< set once, before `code` and `what`; read after the launch
  const char* code = "";             ///< "codegen.cuda_race", ..._barrier, ..._bounds, ..._alignment, ..._trap
  std::string what;                  ///< with threads, line and memory
};

/// What emulated code calls, for LoadedCode::link().
std::span<const RuntimeFunction> emulation_functions();

}  // namespace partita::codegen
