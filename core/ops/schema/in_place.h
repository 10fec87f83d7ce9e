#pragma once
#include <vector>

#include "core/ir/graph.h"

namespace partita {

/// aten.t for aten.t_ and the like, which write no memory but change their argument's sizes and strides; null for
/// others. Takes the same arguments.
const Op* view_in_place(const Op* op);

/// Does the call, as set_ does, make its first argument a tensor over the memory of its second, or over a new and empty
/// one?
bool takes_memory(const Op* op);

/// inductor.resize_storage_bytes_, which frees the memory of its argument, or takes new memory for it.
bool resizes_storage(const Op* op);

/// Does autograd leave no trace of the call? PyTorch has no derivative of logical_not_ and its like and notes nothing,
/// so that gradients pass as if nothing had been written.
bool is_untraced_write(const Op* op);

/// Does a call of the graph, sub graphs included, change the sizes or strides of its own argument?
bool changes_geometry(const Graph& graph);

/// In Python x.t_() changes x itself, whatever it is called later. Makes all later readers of x read the call, whose
/// meta has the new sizes, and forgets annotations of torch-level calls that were printed after such a change. Returns
/// what each placeholder is at the end: itself, or the last such call on it.
std::vector<Node*> follow_in_place(Graph& graph);

}  // namespace partita
