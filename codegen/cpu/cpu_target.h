#pragma once
#include <string>
#include <vector>

#include "codegen/host/processor.h"
#include "core/loops/target.h"

namespace partita::codegen {

/// A level of instructions that a library has code for.
struct InstructionSet {
  std::string name;  ///< "baseline", "avx2", "avx512"
  Processor processor;
};
/// From the least to the most; on machines that are no x86-64 the host's baseline only.
std::vector<InstructionSet> instruction_sets();
/// The host's target, but for these instructions.
loops::Target target_of(const InstructionSet& set, int threads);

/// The target for this machine: its vectors and caches, the library routines, and what oneDNN does on it.
loops::Target host_target(int threads = 1);

}  // namespace partita::codegen
