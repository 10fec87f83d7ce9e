#pragma once
#include <vector>

#include "core/ir/graph.h"

namespace partita {

/// Whose memory a value may lie in, as far as schemas say: views share the root of what they view.
class Aliases {
 public:
  explicit Aliases(const Graph& graph);
  /// A node made since; those it reads must be known.
  void add(const Node& node);

  bool share(const Node& a, const Node& b) const { return root(a.id()) == root(b.id()); }
  /// Some node writes to the memory of this value.
  bool mutated(const Node& node) const { return mutated_[root(node.id())]; }
  /// The graph returns that memory.
  bool returned(const Node& node) const { return returned_[root(node.id())]; }
  /// The caller sees that memory: it is returned, or comes from an input or attribute.
  bool visible(const Node& node) const { return returned(node) || given_[root(node.id())]; }

  /// May every reader of `node` read `replacement` instead, as to memory? Not when that would make two values the
  /// caller sees share memory that did not, nor when one of them is written to.
  bool may_replace(const Node& node, const Node& replacement) const;
  /// Readers of `node` were made to read `replacement`.
  void replaced(const Node& node, const Node& replacement);

 private:
  std::size_t root(std::size_t id) const;

  std::vector<std::size_t> root_;                 // by node id
  std::vector<bool> mutated_, returned_, given_;  // by root
};

}  // namespace partita
