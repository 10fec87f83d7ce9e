#pragma once
#include <string>

namespace partita::codegen {

/// LLVM's name of the processor that code is made for.
struct Processor {
  std::string name, features, triple;
  int vector_bytes = 0;  ///< 64 with AVX-512
};
const Processor& host_processor();

}  // namespace partita::codegen
