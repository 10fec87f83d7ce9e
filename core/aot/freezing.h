#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/aot/aot.h"

namespace partita {

/// Makes the parameters, buffers and constants of an inference graph attributes of it ("_frozen_param3" is input 3's),
/// as PyTorch's freezing does, and returns which. The others stay inputs: those that the program writes, those that it
/// returns or whose memory it does, and those without a known value in the layout of their meta. Placeholders stay, so
/// that the calling convention does; who calls the graph may pass None for those that nothing reads.
/// `values`: one per placeholder; empty: the program's tensors. `made`: what is known of the graph's inputs and
/// outputs.
std::vector<std::size_t> freeze_parameters(Graph& graph, const ExportedProgram* program,
                                           const std::vector<Value>& values, const AotGraphs& made);

/// Does the program of an archive give it a new value, as one of its results?
bool is_written(const ExportedProgram* program, const std::string& name);

/// The values that may be frozen: those of the graph's inputs that are no user's, by their names in `inputs`.
std::map<std::string, Tensor> freezable(const ExportedProgram* program, const std::vector<Value>& values,
                                        const std::vector<InputBinding>& inputs);

}  // namespace partita
