#pragma once
// Clang as a library, in a shared library of its own that is opened when the first CUDA kernel is emulated: nobody else
// waits for Clang to be loaded.
#include <string>
#include <string_view>

namespace partita::codegen {

/// A translation unit, and what becomes of it.
struct EmulationUnit {
  std::string_view prelude;    ///< the same for all units of a process; it is parsed once
  std::string_view text;       ///< kernels; `#line 1 "kernel"` begins each
  std::string_view processor;  ///< as LLVM names it
  std::string_view features;   ///< "+avx2,-avx512f"
  bool keep_text = false;      ///< fill `ir`

  std::string object, ir;  ///< a relocatable object
  std::string errors;      ///< Clang's, empty if it compiled
  double parse_ms = 0, optimise_ms = 0, generate_ms = 0;
};

/// The library exports it by this name.
inline constexpr const char* compile_emulation_symbol = "partita_compile_emulation";
using CompileEmulation = void (*)(EmulationUnit& unit);

}  // namespace partita::codegen
