#pragma once
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Makes every reader of `node` read `value`. If it is a list or tuple, the getitems of `node` are replaced by its
/// items and erased. The node itself stays. Error ir.getitem: an item that the list does not have.
Status replace_uses(Node& node, const Arg& value);

/// A graph with the name, form, symbols, attributes and sub graphs of another one, which nodes are still to be put
/// into.
std::unique_ptr<Graph> without_nodes(const Graph& graph);

}  // namespace partita
