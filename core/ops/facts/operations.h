#pragma once
#include <optional>

#include "core/ir/graph.h"
#include "core/sym/sym_expr.h"

namespace partita {

/// The arithmetic operations of a call, two for each product that is added up, by the sizes in the metas: of products,
/// convolutions and attention, and of what is made of them (linear, conv2d, lstm: the sum over the parts). Masked
/// products of attention count, and of a convolution only the gradients that are asked for. As
/// torch/utils/flop_counter.py, which for the weight's gradient of a grouped convolution counts all groups' products
/// with each other; here it counts those that are made. Nullopt for other calls, and where metas are missing.
std::optional<SymExpr> counted_operations(const Node& call);

/// Two products of each query with each key; in the backward five. `query`: the argument that it is, before key and
/// value, as [..., length, features].
std::optional<SymExpr> attention_operations(const Node& call, std::size_t query, bool backward);
/// A window for each element of the result; of a transposed convolution for each of the input. `input`: the argument
/// that it is, before the weight.
std::optional<SymExpr> convolution_operations(const Node& call, const TensorMeta* result, std::size_t input,
                                              bool transposed);
/// `left`: the argument that is multiplied, whose last size is summed over.
std::optional<SymExpr> product_operations(const Node& call, std::size_t left);

}  // namespace partita
