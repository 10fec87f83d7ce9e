#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/loops/loop.h"

namespace partita::codegen {

constexpr std::int64_t max_lanes = 64;

/// Runs iterations [begin, end) of the phase's parallel loop. buffers: one per non-scratch Kernel::buffers, in order,
/// then a KernelFault (runtime.h). symbols: values of the names that the module was compiled with. scratch: memory of
/// the thread, 64-byte aligned.
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

/// The error `code` for what emitters cannot express: float8, most functions in index expressions, complex arithmetic
/// (not with `cuda`), and sizes that are rounded from real numbers (with `cuda`).
Status check_kernel(const loops::Kernel& kernel, const char* code = "codegen.cpu",
                    const char* compiler = "the CPU compiler", bool cuda = false);
/// Describes a compiled kernel. It depends only on the kernel, so that stored code can be called without compiling.
/// `symbol` names its functions.
KernelEntry kernel_entry(const loops::Kernel& kernel, const std::string& symbol);

/// The loops of a phase, as the emitter groups them.
struct PhaseShape {
  std::vector<const loops::Loop*> parallel;  ///< perfectly nested, outermost first; flattened into [begin, end)
  bool serial = false;                       ///< it has atomic sums; one thread runs it, to keep their order
  std::vector<const loops::Stmt*> body;
};
std::vector<PhaseShape> phase_shapes(const loops::Kernel& kernel);
/// The loops whose iterations become lanes: the marked ones. If a reduction walks memory in larger strides and its
/// enclosing parallel loop walks it in steps of one (a column sum), it is that loop instead.
std::set<const loops::Loop*> vector_loops(const loops::Kernel& kernel);

}  // namespace partita::codegen
