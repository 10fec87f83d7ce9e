#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/aot/compile_fn.h"
#include "core/functionalize/functionalize.h"
#include "core/load/program.h"
#include "core/partition/partition.h"

namespace partita {

/// What is replaced by simpler operators once the graph is differentiated, besides composites, which always are.
enum class Decompositions : unsigned char {
  None,       ///< nothing, as AOTAutograd without a table
  Core,       ///< what has a decomposition on the way to the compiler
  Functorch,  ///< torch._functorch.compilers.default_decompositions
};

struct AotOptions {
  bool train = true;
  PartitionOptions partition = {};
  Decompositions decompositions = Decompositions::None;
  /// Per placeholder of the graph; empty: parameters (by the archive's signature, else by their names in dynamo's
  /// text), and for text without parameters every floating input.
  std::vector<bool> requires_grad = {};
  /// Inference: the graph writes mutated inputs by copy_ at its end, as PyTorch's compilers have it. false: it returns
  /// their new values first, and finish_forward (run_compiled.h) writes them.
  bool keep_input_mutations = true;
  /// See JointOptions: for who runs the graphs without PyTorch's runtime around them.
  bool tangents_for_aliases = false;
};

/// What an input of the graph is to the user.
enum class InputRole : unsigned char { User, Parameter, Buffer, Constant, Symbol };
struct InputBinding {
  InputRole role = InputRole::User;
  std::string name;  ///< of a parameter, buffer, constant: its path; of others the placeholder's
  bool requires_grad = false;
};

/// AOTAutograd's products.
struct AotGraphs {
  std::unique_ptr<Graph> joint;  ///< null for inference
  /// forward and, for training, backward. For inference the forward is the functional graph itself.
  Partition partition;
  ViewAndMutationMeta meta;
  std::vector<InputBinding> inputs;     ///< one per placeholder of the forward
  std::vector<std::size_t> tangent_of;  ///< for each tangent the forward output (before saved values) it belongs to
  bool train = false;                   ///< is there a backward
};

/// graph: dynamo text, exported or ATen code; program: the archive's signature, null without. A joint graph is
/// partitioned as it is.
Result<AotGraphs> aot(const Graph& graph, const Program* program, const AotOptions& options);

}  // namespace partita
