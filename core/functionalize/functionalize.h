#pragma once
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/ops/facts/requires_grad.h"

namespace partita {

/// How a graph treats an input. Names are those of PyTorch's InputAliasInfo.
enum class MutationType : unsigned char { NotMutated, MutatedInGraph, MutatedOutGraph };
struct InputAliasInfo {
  bool is_leaf = true;  ///< of autograd's graph; false for numbers
  bool mutates_data = false;
  bool mutates_metadata = false;  ///< sizes or strides change, as by t_, unsqueeze_, resize_
  bool mutations_under_no_grad = false;
  bool mutations_hidden_from_autograd = true;  ///< true without any, false for numbers
  bool mutates_storage = false;  ///< it shows other memory afterwards, as by set_; then mutates_metadata too
  bool resizes_storage = false;  ///< by inductor.resize_storage_bytes_
  bool requires_grad = false;
  MutationType mutation_type = MutationType::NotMutated;
  // What PyTorch's class does not have.
  bool seen_by_autograd = false;  ///< a write of data has a derivative, be it zero
  /// If mutates_storage: the input whose memory it shows; nullopt if it is memory that the graph made.
  std::optional<std::size_t> memory_of = {};
  /// If mutates_metadata: how it shows its memory (or that of memory_of) afterwards, with an offset from where it
  /// begins. Nullopt if that is no input's (resize_ to more elements).
  std::optional<TensorMeta> shown = {};
};

/// How an output shares memory with inputs and other outputs. Names are those of PyTorch's OutputType.
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

/// How a tensor shows the memory of another: its sizes, strides and its offset from where that one begins, in elements
/// of its own dtype.
struct Place {
  bool in_input = false;  ///< of an input; else of a result of the graph
  /// Index of the input; or of the result, counted from the first output of the user. Outputs in a memory that no
  /// result shows all of name the first of them, which names itself; their offsets count from where the memory begins.
  std::size_t of = 0;
  TensorMeta shown;
  SymList strides = {};  ///< of that result
};

struct OutputAliasInfo {
  OutputType type = OutputType::NonAlias;
  std::optional<std::size_t> base_idx = {};  ///< index of the input, output or intermediate base that it is a view of
  bool requires_grad = false;
  std::vector<std::size_t> dynamic_dims = {};  ///< dimensions of symbolic size
  std::optional<Place> place = {};             ///< set if it lies in an input's memory, or in that of another result
};

/// PyTorch's ViewAndMutationMeta: how to make the user's outputs and mutated inputs from a functional graph's results.
struct ViewAndMutationMeta {
  std::vector<InputAliasInfo> inputs;    ///< one per placeholder
  std::vector<OutputAliasInfo> outputs;  ///< one per output of the user
  std::size_t num_intermediate_bases = 0;
  bool keep_input_mutations = false;

  /// Inputs whose new values are the functional graph's first outputs, in this order.
  std::vector<std::size_t> mutated_runtime_inputs() const;
  /// Inputs that the graph itself writes, by copy_ at its end.
  std::vector<std::size_t> mutated_in_graph() const;
  /// Outputs that are made again at run time as views of something.
  std::vector<std::size_t> aliased_outputs() const;
  std::vector<std::size_t> outputs_of(OutputType type) const;
  /// Results of the functional graph.
  std::size_t num_forward_returns() const;
};

/// A graph of pure ATen calls; only copy_ to placeholders at its end writes. It returns the new values of the inputs
/// that are written outside of the graph, then the user's outputs, then intermediate bases.
struct FunctionalGraph {
  std::unique_ptr<Graph> graph;  ///< its metas say what requires a gradient
  ViewAndMutationMeta meta;
  /// Calls made under no_grad. Their results carry no gradient.
  std::unordered_set<const Node*> no_grad;
  /// New contents that were written without autograd's knowledge. Their gradients go to the contents before.
  HiddenWrites hidden = {};
};

struct FunctionalizeOptions {
  /// Write mutated inputs by copy_ in the graph, where autograd permits it (inference graphs), instead of returning
  /// their new values.
  bool keep_input_mutations = false;
  /// One entry per placeholder; missing entries are false.
  std::vector<bool> requires_grad = {};
  /// One entry per placeholder: is it a leaf of autograd's graph? Missing: unless it requires grad and is written
  /// with autograd's knowledge, which eager PyTorch forbids for a leaf.
  std::vector<bool> is_leaf = {};
  bool pre_dispatch = false;  ///< see to_aten
};

/// Makes any graph of torch-level or ATen calls functional. Decomposes composite operators into those that have a
/// derivative formula.
Result<FunctionalGraph> functionalize(const Graph& graph, const FunctionalizeOptions& options = {});

}  // namespace partita
