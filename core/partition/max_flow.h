#pragma once
#include <cstdint>
#include <vector>

namespace partita {

/// A directed network whose cheapest cut between source and sink is asked for.
class FlowNetwork {
 public:
  static constexpr std::int64_t infinite = std::int64_t{1} << 60;

  struct Edge {
    int from;
    int to;
    std::int64_t capacity;
  };

  int vertex() { return vertices_++; }
  void edge(int from, int to, std::int64_t capacity) { edges_.push_back({from, to, capacity}); }

  /// For each vertex: is it on the sink's side of the cheapest cut, of several the one nearest to the sink?
  /// `value` becomes the cut's capacity, at least `infinite` when only an infinite edge could be cut.
  std::vector<char> min_cut(int source, int sink, std::int64_t& value) const;
  const std::vector<Edge>& edges() const { return edges_; }

 private:
  int vertices_ = 0;
  std::vector<Edge> edges_;
};

}  // namespace partita
