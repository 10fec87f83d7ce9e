#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/ir/graph.h"

namespace partita {

/// The memory that each value may lie in, as far as schemas tell. A view has the root of what it views.
class Aliases {
 public:
  explicit Aliases(const Graph& graph);
  /// Adds a node made after construction; the nodes that it reads must be known.
  void add(const Node& node);

  bool share(const Node& a, const Node& b) const { return root(a.id()) == root(b.id()); }
  /// Does some node write to the memory of this value?
  bool mutated(const Node& node) const { return mutated_[root(node.id())]; }
  /// Does the graph return that memory?
  bool returned(const Node& node) const { return returned_[root(node.id())]; }
  /// Can the caller see that memory? It is returned, or comes from an input or attribute.
  bool visible(const Node& node) const { return returned(node) || given_[root(node.id())]; }

  /// May every reader of `node` read `replacement` instead, as far as memory is concerned? No if two values that the
  /// caller sees would newly share memory, or if one of them is written to.
  bool may_replace(const Node& node, const Node& replacement) const;
  /// Lets the readers of `node` read `replacement`.
  void replace_uses(Node& node, Node& replacement);

 private:
  std::size_t root(std::size_t id) const;

  std::vector<std::size_t> root_;                 // by node id
  std::vector<bool> mutated_, returned_, given_;  // by root
  std::map<std::pair<const Node*, std::int64_t>, std::size_t>
      results_;  // of a call with several: id of the first getitem
};

/// The condition of every local rewrite: `replacement` may stand for `node` if readers see the same dtype, sizes and
/// strides, and no two values newly share memory. Metas must be known.
bool may_stand_for(const Node& replacement, const Node& node, const Aliases& aliases);

/// The node's arguments in schema order, with defaults. Empty when it has no schema or the arguments do not fit.
Args bound_arguments(const Node& node);

}  // namespace partita
