#pragma once
#include "core/aot/wrapper.h"

namespace partita {

/// Replaces the inputs that are tensor subclasses by their inner tensors, and each operator on them by one for each
/// inner tensor. `io.metadata["subclasses"]` declares the classes whose operators work so, with the names of their
/// inner tensors, as PyTorch's TwoTensor: {"TwoTensor": ["a", "b"]}. Nullopt when the graph has no such input. Errors:
/// io.subclasses for a declaration that cannot be read; aot.subclass for what has another meaning than that: with
/// `train`, an operator on such a tensor and a plain one, whose gradient would be of the class.
Result<std::optional<SubclassWrapper>> unwrap_subclasses(std::unique_ptr<Graph>& graph, const TensorFile& io,
                                                         bool train);

/// The IO file of the graph over inner tensors: input.0.a becomes input.0, input.0.b input.1, tangents likewise.
TensorFile with_inner_keys(const SubclassWrapper& wrapper, const TensorFile& io);
/// The other way, for the results: output.0 becomes output.0.a.
TensorFile with_outer_keys(const SubclassWrapper& wrapper, const TensorFile& out);

}  // namespace partita
