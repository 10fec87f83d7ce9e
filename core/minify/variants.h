#pragma once
// Simpler neighbours of a small graph. Internal to core/minify.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita::minify {

struct Variant {
  std::unique_ptr<Graph> graph;
  std::vector<Value> inputs;
  std::string change;  ///< of the inputs' values, in words; empty when placeholders of the same name keep theirs
};
/// Called for each variant, the boldest first, until it returns true.
using Offer = std::function<bool(Variant)>;

void fewer_outputs(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// A call replaced by one of its inputs of the same dtype and sizes.
void bypassed_calls(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// A call replaced by an input of ones: what was computed there may be too small for the failure to show.
void calls_as_inputs(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// What leads to a result instead of it, with floating inputs 1024 times as large: later calls may only have made a
/// small error large enough to see.
void earlier_ends(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// Keyword arguments and trailing arguments that have a default.
void fewer_arguments(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// One placeholder instead of two that look alike.
void fewer_inputs(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// A size made smaller wherever it stands: in placeholders, in size arguments, in products with other sizes; and the
/// value of a symbol.
void smaller_sizes(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// Other floating dtypes made float32.
void plainer_dtypes(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// Row-major inputs, inputs of zeros or ones.
void plainer_values(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);

/// Erases calls that nobody reads and placeholders that nobody reads, with their inputs.
void drop_unread(Graph& graph, std::vector<Value>& inputs);
/// Metas anew from the placeholders'. False when they do not fit together or an operator is not known.
bool infer_again(Graph& graph);

}  // namespace partita::minify
