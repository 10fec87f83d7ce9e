#pragma once
// Runs blocks of CUDA threads on this machine's CPU, and finds what a GPU would do wrong without a word.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "codegen/cuda/memory_check.h"
#include "codegen/host/runtime.h"
#include "codegen/program/kernel_code.h"

namespace partita::codegen {

/// What the functions of an emulated kernel are told of its run: the argument behind the kernel's own.
class EmulatedLaunch final : public KernelWatch {
 public:
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

  void takes(std::byte* begin, std::size_t bytes, bool fresh) override {
    if (fresh) std::memset(begin, 0xff, bytes);  // NaN, which shows reads before the first write
    memory.push_back({begin, bytes});
  }
  /// A function begins when all blocks of the one before have ended.
  void begin(std::int64_t iterations) override {
    blocks = iterations;
    described = false;
  }
  void* argument() override { return this; }
  const Found* found() const override { return failed ? &error : nullptr; }

  std::mutex lock;         ///< of what its first block does
  bool described = false;  ///< are `name`, `item` and `check` set?

  std::atomic<bool> failed = false;  ///< set once, before `error`; read after the launch
  Found error;  ///< codegen.cuda_race, ..._barrier, ..._bounds, ..._alignment, ..._trap; with threads, line and memory
};

/// What emulated code calls, for link_code().
std::span<const RuntimeFunction> emulation_functions();

}  // namespace partita::codegen
