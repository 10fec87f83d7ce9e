#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "codegen/program/kernel_entry.h"

namespace partita::codegen {

constexpr std::int64_t max_lanes = 64;

/// The emitter of this folder.
inline constexpr EmitterReach cpu_emitter = {.error = "codegen.cpu", .compiler = "the CPU compiler", .rounds = true};

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
