#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// What happens to an input; names as PyTorch's InputAliasInfo.
enum class MutationType : unsigned char { NotMutated, MutatedInGraph, MutatedOutGraph };
struct InputAliasInfo {
  bool mutates_data = false;
  bool mutates_metadata = false;  ///< sizes or strides change: t_, unsqueeze_, resize_, ...
  bool mutations_under_no_grad = false;
  bool requires_grad = false;
  MutationType mutation_type = MutationType::NotMutated;
};

/// How an output relates to memory that exists otherwise; names as PyTorch's OutputType.
enum class OutputType : unsigned char {
  NonAlias,
  AliasOfInput,
  IsInput,
  AliasOfIntermediate,
  AliasOfIntermediateSaveAsOutput,
  AliasOfIntermediateBaseIsUserOutput,
  UnsafeViewAlias,
};
std::string_view name_of(OutputType type);    ///< "alias_of_input"
std::string_view name_of(MutationType type);  ///< "MUTATED_IN_GRAPH"

struct OutputAliasInfo {
  OutputType type = OutputType::NonAlias;
  std::optional<std::size_t> base_idx = {};  ///< of the input, output or intermediate base it is a view of
  bool requires_grad = false;
};

/// PyTorch's ViewAndMutationMeta: how to give a functional graph's outputs their meaning again.
struct ViewAndMutationMeta {
  std::vector<InputAliasInfo> inputs;    ///< one per placeholder
  std::vector<OutputAliasInfo> outputs;  ///< one per output of the user
  std::size_t num_intermediate_bases = 0;
  bool keep_input_mutations = false;

  /// Inputs whose new values are the functional graph's first outputs, in this order.
  std::vector<std::size_t> mutated_runtime_inputs() const;
  /// Inputs that the graph itself writes by copy_ at its end.
  std::vector<std::size_t> mutated_in_graph() const;
};

/// A graph of pure ATen calls in which nothing is written, except by copy_ to placeholders at the end.
/// Returns: new values of the inputs mutated out of the graph, the user's outputs, intermediate bases.
struct FunctionalGraph {
  std::unique_ptr<Graph> graph;
  ViewAndMutationMeta meta;
  /// Calls made under no_grad: their results carry no gradient.
  std::unordered_set<const Node*> no_grad;
};

struct FunctionalizeOptions {
  /// Write mutated inputs by copy_ in the graph where autograd permits (inference graphs), instead of returning them.
  bool keep_input_mutations = false;
  /// Per placeholder; shorter: false.
  std::vector<bool> requires_grad = {};
};

/// Any graph of torch-level or ATen calls. Composite operators are decomposed to what autograd has formulas for.
Result<FunctionalGraph> functionalize(const Graph& graph, const FunctionalizeOptions& options = {});

}  // namespace partita
