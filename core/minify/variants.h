#pragma once
// Simpler variants of a small graph. Internal to core/minify.
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
  std::string change;  ///< how the inputs' values changed; empty if placeholders of the same name keep theirs
};
/// Called for each variant, the largest change first, until it returns true.
using Offer = std::function<bool(Variant)>;

/// Drops outputs, half of them first.
void fewer_outputs(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// Replaces a call by one of its inputs with the same dtype and sizes.
void bypassed_calls(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// Replaces a call by an input of ones, because its own values may be too small to show the failure.
void calls_as_inputs(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// Returns the inputs of a result's call instead of the result, and makes floating inputs 1024 times as large: the last
/// calls may only have made a small error visible.
void earlier_ends(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// Drops keyword arguments and trailing arguments that have a default.
void fewer_arguments(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// Merges two placeholders that look alike.
void fewer_inputs(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// Makes a size smaller everywhere: in placeholders, in size arguments, and in products with other sizes. Also reduces
/// values of symbols.
void smaller_sizes(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// Makes other floating dtypes float32.
void plainer_dtypes(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);
/// Makes inputs row-major, or all zeros or ones.
void plainer_values(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer);

/// Erases calls without users, and placeholders without users together with their inputs.
void drop_unread(Graph& graph, std::vector<Value>& inputs);
/// Infers all metas again from the placeholders'. Returns false when they do not fit together or an operator is
/// unknown.
bool infer_again(Graph& graph);

}  // namespace partita::minify
