#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/loops/loop.h"

namespace partita::codegen {

constexpr std::int64_t max_lanes = 64;

/// buffers: for each non-scratch Kernel::buffers, in order, then a KernelFault (runtime.h). symbols: values of the
/// names the module was compiled with. scratch: memory private to the thread, 64-byte aligned. Runs iterations [begin,
/// end) of the phase's parallel loop.
using PhaseFunction = void (*)(void* const* buffers, const std::int64_t* symbols, std::byte* scratch,
                               std::int64_t begin, std::int64_t end);

/// A part of a kernel that runs between two barriers, or one of its parallel loops: one function.
struct Phase {
  std::string symbol;
  bool parallel = false;       ///< false: called once with [0, iterations)
  SymExpr iterations = 1;      ///< of the outermost parallel loops, flattened
  std::int64_t alignment = 1;  ///< `begin` must be a multiple of it
};

/// How to call a compiled kernel.
struct KernelEntry {
  std::vector<Phase> phases;
  std::vector<SymExpr> scratch;           ///< elements of each scratch buffer
  std::vector<std::size_t> scratch_item;  ///< bytes of one element
  std::size_t scratch_bytes(const std::function<std::int64_t(const SymExpr&)>& value) const;
};

/// What the emitter cannot express: complex and float8 arithmetic, functions in index expressions.
Status check_kernel(const loops::Kernel& kernel);
/// The entry is a function of the kernel alone, so that cached code needs no compiler. `symbol` names its functions.
KernelEntry kernel_entry(const loops::Kernel& kernel, const std::string& symbol);

/// The loops of a phase as the emitter treats them.
struct PhaseShape {
  std::vector<const loops::Loop*> parallel;  ///< perfectly nested, outermost first; flattened into [begin, end)
  bool serial = false;                       ///< has atomic sums: one thread, so that their order is always the same
  std::vector<const loops::Stmt*> body;
};
std::vector<PhaseShape> phase_shapes(const loops::Kernel& kernel);
/// The loops whose iterations become lanes: those marked, but where a reduction walks memory in strides that its
/// enclosing parallel loop walks in ones (a column sum), that loop instead.
std::set<const loops::Loop*> vector_loops(const loops::Kernel& kernel);

}  // namespace partita::codegen
