#pragma once
#include <string>

#include "core/loops/target.h"

namespace partita::codegen {

/// LLVM's name of the processor that code is made for.
struct Processor {
  std::string name, features, triple;
  int vector_bytes = 0;  ///< 64 with AVX-512
};
const Processor& host_processor();

/// The target for this machine: its vectors and caches, the library routines, and what oneDNN does on it.
loops::Target host_target(int threads = 1);

}  // namespace partita::codegen
