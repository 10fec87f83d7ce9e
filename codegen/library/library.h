#pragma once
// `partita compile`: a program as a shared library with the C interface partita_model.h.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/load/safetensors.h"
#include "core/load/session.h"

namespace partita::codegen {

struct LibraryOptions {
  std::string output;                  ///< "model.so"; partita_model.h is written beside it
  bool train = false;                  ///< with a backward
  bool weights_beside = false;         ///< weights go to model.safetensors beside the library
  bool evaluations = false;            ///< the operators' evaluations are taken in although no call seems to need them
  std::vector<std::string> isas = {};  ///< instruction sets to make code for; empty: all
  std::optional<std::uint64_t> random_weights = {};
  const Progress* progress = nullptr;
};

struct LibraryReport {
  std::size_t kernels = 0;  ///< for each instruction set
  std::vector<std::string> isas;
  std::uint64_t code_bytes = 0;  ///< of kernels, for all instruction sets
  std::uint64_t weight_bytes = 0, library_bytes = 0;
  std::vector<std::string> inputs, outputs, gradients;  ///< "input_ids: int64[1, s0]"
  std::vector<std::string> guards;
  std::uint64_t folded = 0;            ///< constants that are computed when the library is loaded
  std::vector<std::string> evaluated;  ///< calls that only the operators' evaluations do: "topk (aten::topk)"
  double compile_ms = 0, link_ms = 0;
};

/// Compiles a program for all sizes that its guards permit and links a library. `io` gives weights that the archive
/// lacks. Errors (exit 3) name what a library cannot have: compile.wrapper, compile.dynamic, compile.values,
/// compile.tied; and those of aot(), plans and the linker.
Result<LibraryReport> compile_library(const Artefact& artefact, const TensorFile& io, const LibraryOptions& options);

}  // namespace partita::codegen
