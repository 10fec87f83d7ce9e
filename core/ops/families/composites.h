#pragma once
// Operators that decompose before autograd in every case, by family.
#include "core/ops/record/gradients.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/promote.h"

namespace partita {

/// The items of a Tensor[] argument.
std::vector<Node*> tensor_list(const FakeCall& call, std::string_view name);
/// aten.slice.Tensor. Without `end` the end is INT64_MAX, as in PyTorch.
Node* slice(Builder& b, Node* x, std::int64_t dim, Arg start, Arg end = Arg());
Node* concatenate(Builder& b, const std::vector<Node*>& parts, std::int64_t dim = 0);
Node* stacked(Builder& b, const std::vector<Node*>& parts, std::int64_t dim = 0);
/// Views each vector along its own dimension of a grid, expanded over the other dimensions.
std::vector<Node*> grids(Builder& b, const std::vector<Node*>& vectors);
Arg list_of(const std::vector<Node*>& nodes);
Arg list_of(const std::vector<std::int64_t>& numbers);
/// {dtype, layout, device} of a tensor, as PyTorch's C++ code passes a tensor's options to a factory.
Kwargs options_of(const TensorMeta& like, std::optional<DType> dtype = {});
/// at::reshape: a view where the strides allow one, else a view of a copy.
Node* reshape(Builder& b, Node* x, const SymList& sizes);

}  // namespace partita
