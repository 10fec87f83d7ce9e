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

/// Which operators are replaced by simpler ones before the graph is differentiated and partitioned.
enum class Decompositions : unsigned char {
  Default,  ///< composites only, as AOTAutograd without a table
  Core,     ///< down to core ATen
  None,     ///< composites stay where they can be differentiated
};

struct AotOptions {
  bool train = true;
  PartitionOptions partition = {};
  Decompositions decompositions = Decompositions::Default;
  /// Per placeholder of the graph; empty: parameters (by the archive's signature, else by their name in dynamo's text
  /// or Parameter placeholders, else every floating placeholder).
  std::vector<bool> requires_grad = {};
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
  bool train = false;
};

/// graph: dynamo text, exported or ATen code; program: the archive's signature, null without. A joint graph is
/// partitioned as it is.
Result<AotGraphs> aot(const Graph& graph, const Program* program, const AotOptions& options);

}  // namespace partita
