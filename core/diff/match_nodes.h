#pragma once
#include <unordered_map>

#include "core/ir/graph.h"

namespace partita {

/// Pairs nodes of two graphs that do the same: by operator, source line, module and what they are computed from and
/// used for. Names, line numbers and sizes do not count, so that a graph still matches itself at another size. A pair
/// with different operators stands in the same place. Each node is in one pair at most.
class NodeMatch {
 public:
  /// Matches them; both must outlive it.
  NodeMatch(const Graph& a, const Graph& b);
  const Node* in_b(const Node* of_a) const { return find(to_b_, of_a); }  ///< null: there is none
  const Node* in_a(const Node* of_b) const { return find(to_a_, of_b); }

 private:
  using Map = std::unordered_map<const Node*, const Node*>;
  struct Side;
  using Keys = std::unordered_map<const Node*, std::uint64_t> Side::*;

  static const Node* find(const Map& map, const Node* node) {
    const auto found = map.find(node);
    return found == map.end() ? nullptr : found->second;
  }
  void pair(const Node* a, const Node* b);
  void pair_equal_counts(const Side& a, const Side& b, std::initializer_list<Keys> keys, bool inputs_too = true);
  bool pair_by_neighbours(const Side& a, const Side& b, std::initializer_list<Keys> keys, int least);
  int common_neighbours(const Node& a, const Node& b) const;

  Map to_b_, to_a_;
};

}  // namespace partita
