#pragma once
// Random programs with memory: writes in place, through chains of views too, inputs that share memory, changes of sizes
// and strides, outputs that alias, regions without gradients, and control flow.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "codegen/backends.h"
#include "core/ir/graph.h"
#include "core/load/safetensors.h"

namespace partita::fuzz {

/// What compiles graphs and programs: `--backend`.
inline const Backend* compiler = &default_compiler();

struct Program {
  std::unique_ptr<Graph> graph;  ///< ATen calls and operators of sub graphs; null when none could be made
  TensorFile io;                 ///< inputs, with `storages`; for training also requires_grad and tangents
};

/// Makes a random program; equal seeds give equal programs. What is called follows from the operators' records and the
/// alias marks of their schemas. `trying` is called before each call is tried, because it may crash.
Program generate_program(std::uint64_t seed, bool train, const std::function<void(const Node&)>& trying = {});

/// Why a program was not compared.
struct Refused {
  std::string why;
};
/// Runs a program by the interpreter as it stands and compiled (with `train`, its forward and backward), and compares
/// outputs, inputs after the run, who shares memory with whom, and gradients. Returns what differs.
std::optional<std::string> check_program(const Program& program, bool train, std::optional<Refused>& refused);

/// Writes STEM.py, STEM.io.safetensors and STEM.out.safetensors, what was computed compiled, for programs_in_torch.py.
Status write_program(const Program& program, bool train, const std::string& stem);

}  // namespace partita::fuzz
