#pragma once
#include <map>
#include <string>
#include <vector>

#include <llvm/ADT/SmallBitVector.h>

#include "core/loops/loop.h"

namespace partita::codegen {

/// What the values of a kernel depend on. This decides in which loop each is computed. Bits are loop numbers in order
/// of appearance, buffer numbers, and accumulator numbers.
struct Dependences {
  std::map<std::string, int> loop_of_var;
  std::map<const loops::Loop*, int> loop_number;
  std::vector<llvm::SmallBitVector> loop_stores;        ///< per loop: buffers that it stores to
  std::vector<llvm::SmallBitVector> accumulator_loops;  ///< per accumulator: the loops around the one that starts it
  struct Node {
    llvm::SmallBitVector loops, buffers, accumulators;  ///< buffers: those it loads and this kernel also writes
  };
  std::vector<Node> nodes;

  explicit Dependences(const loops::Kernel& kernel);

 private:
  void number(const std::vector<loops::Stmt>& body, std::vector<int>& around, const loops::Kernel& kernel);
};

}  // namespace partita::codegen
