#pragma once
#include <cstdint>
#include <vector>

namespace partita {

/// A directed network, and its cheapest cut between source and sink.
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

  /// For each vertex, whether it is on the sink's side of the cheapest cut. Of several cheapest cuts, takes the one
  /// nearest to the sink. `value` receives the cut's capacity; it is at least `infinite` if every cut has an infinite
  /// edge.
  std::vector<char> min_cut(int source, int sink, std::int64_t& value) const;
  const std::vector<Edge>& edges() const { return edges_; }

 private:
  int vertices_ = 0;
  std::vector<Edge> edges_;
};

}  // namespace partita
