#pragma once
// How a compiled kernel is called.
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/loops/loop.h"

namespace partita::codegen {

/// A fault in a kernel, which ends the run. The first report is kept. The kernel goes on with values in range.
struct KernelFault {
  static constexpr std::int64_t zero_division = -1;

  std::atomic<bool> met = false;
  std::int64_t which = 0;     ///< index into ScalarBuilder::bounds(), or zero_division
  std::int64_t position = 0;  ///< the index that is out of bounds
};

/// Runs iterations [begin, end) of the phase's parallel loop. buffers: one per non-scratch Kernel::buffers, in order,
/// then a KernelFault and what a KernelWatch gives. symbols: values of the names that the module was compiled with.
/// scratch: memory of the thread, 64-byte aligned.
using PhaseFunction = void (*)(void* const* buffers, const std::int64_t* symbols, std::byte* scratch,
                               std::int64_t begin, std::int64_t end);

/// A part of a kernel between two barriers, or one of its parallel loops. It is one function.
struct Phase {
  std::string symbol;
  bool parallel = false;       ///< false: called once with [0, iterations)
  SymExpr iterations = 1;      ///< number of iterations of the outermost parallel loops, flattened
  std::int64_t alignment = 1;  ///< `begin` must be a multiple of it
  int threads = 0;             ///< of a CUDA kernel's block, of which an iteration is one
  std::size_t shared_bytes = 0;
};

/// How to call a compiled kernel.
struct KernelEntry {
  std::vector<Phase> phases;
  std::vector<SymExpr> scratch;           ///< elements of each scratch buffer
  std::vector<std::size_t> scratch_item;  ///< bytes per element
  /// Memory of the whole kernel, whose pointers follow those of the buffers: CUDA kernels have it.
  std::vector<SymExpr> workspace;
  std::vector<std::size_t> workspace_item;  ///< bytes per element
  std::size_t scratch_bytes(const std::function<std::int64_t(const SymExpr&)>& value) const;
};

/// An emitter, and what it has code for that not all have.
struct EmitterReach {
  const char* error;     ///< of check_kernel()
  const char* compiler;  ///< its name
  bool complex = false;  ///< arithmetic of complex numbers
  bool rounds = false;   ///< sizes that are rounded from real numbers
};
/// The emitter's error for what it cannot express: float8 and most functions in index expressions are beyond all.
Status check_kernel(const loops::Kernel& kernel, const EmitterReach& emitter);

}  // namespace partita::codegen
