#pragma once
// Converts between safetensors and a graph's values by the conventions of IO and OUT files: input.N, param.NAME,
// buffer.NAME, output.N, grad.NAME and so on; what the format cannot say is in its metadata.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/interp/symbols.h"
#include "core/load/export_signature.h"
#include "core/load/safetensors.h"
#include "core/load/session.h"
#include "core/tensor/value.h"

namespace partita {

struct AotGraphs;

/// "buffer.NAME" -> "buffer_after.NAME"
std::string after_key(const std::string& key);

struct GraphInputs {
  std::vector<Value> values;      ///< in placeholder order
  std::vector<std::string> keys;  ///< keys in files: "input.0", "param.fc1.weight", "buffer.NAME", "tangent.0"
  /// What the file says that a value lies in: "storage.0", or the key of an earlier value that is the very same tensor;
  /// else empty.
  std::vector<std::string> memory;

  /// Drops input i, for which input `kept` stands. `at`: by the caller's input, the place here that it is or lies in.
  void drop(std::size_t i, std::size_t kept, std::vector<std::size_t>& at);
};

/// Collects values for the graph's placeholders and, into graph.attributes, for its get_attr nodes. Weights come from
/// the IO file, else from the archive, else they are random if there is a seed. All are copies if a run may write to
/// one; with `shared`, only where the archive's signature says so: the caller copies what its graph writes. Tensors
/// that a file holds row-major get the strides of the placeholder's meta. Errors: io.missing names what is missing;
/// io.surplus names an input.N too many.
Result<GraphInputs> gather_inputs(Graph& graph, const ExportedProgram* program, const TensorFile& io,
                                  std::optional<std::uint64_t> random_weights, bool shared = false);

/// The archive's signature for the joint graph that was made of its graph: the parameters, buffers and inputs have the
/// keys in IO files that they have for the program, and a tangent that of its output. A tangent that a file lacks is
/// one for scalar results and zero for others, as in a training run without tangents.
ExportedProgram program_of_joint(const Graph& graph, const ExportedProgram& program, const AotGraphs& made);

/// Makes the OUT file: output.N, input_after.N and buffer_after.NAME where values differ from `before`, and the aliases
/// among outputs and inputs. `program` tells which results are mutations. If `before` is empty, nothing was mutated.
Result<TensorFile> collect_outputs(const ExportedProgram* program, const GraphInputs& inputs,
                                   const std::vector<Value>& before, const std::vector<Value>& outputs);

/// What symbolic sizes or strides are; nullopt if a symbol in them has no value.
std::optional<Sizes> values_of(const SymList& list, const SymbolMap& symbols);
/// A row-major tensor in the strides of the meta, as far as `symbols` tells them. A file without strides holds
/// row-major copies, and gradients may come in any layout.
Result<Tensor> laid_out(const Tensor& t, const Meta& meta, const SymbolMap& symbols = {});

/// May running the graph write to its inputs?
bool mutates_inputs(const Graph& graph);

/// The values that a repro script's storages or a dump hold for the graph's inputs, by their keys in IO files; empty
/// when there are none. Tensors in one storage share it. Of a recording, the inputs and results of the call that was
/// kept; errors of reading its files.
Result<TensorFile> own_inputs(const Artefact& artefact);

/// Reads a safetensors file with input.0, input.1, ..., or makes random tensors for a graph_dumper's .input, as
/// PyTorch's get_inputs does. An empty path gives none.
Result<TensorFile> read_inputs(const std::string& path);

}  // namespace partita
