#pragma once
// torch.utils._pytree for what a graph returns: nested tuples, lists and dicts. Everything else is a leaf, None too.
#include <string>
#include <vector>

#include "core/ir/arg.h"

namespace partita {

/// Neither a list, nor a tuple, nor a dict.
bool is_leaf(const Arg& tree);
/// The items of a tuple, list or dict; none for a leaf.
std::vector<Arg> tree_children(const Arg& tree);
/// The leaves of nested containers, in pytree's order.
std::vector<Arg> tree_leaves(const Arg& tree);
/// The tree with other leaves, which must be as many.
Arg with_leaves(const Arg& tree, const std::vector<Arg>& leaves);
/// What Python prints for the TreeSpec, whose first line stands `indent` columns to the right.
std::string tree_spec(const Arg& tree, std::size_t indent = 0);

}  // namespace partita
