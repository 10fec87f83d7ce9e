#include "core/partition/max_flow.h"

#include <algorithm>

// GCC 12 reports Boost's optional edge iterators as uninitialised; they are not.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#pragma GCC diagnostic pop

namespace partita {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct Link {
  std::int64_t capacity = 0;
  std::int64_t residual = 0;
  Traits::edge_descriptor reverse = {};
};
struct Place {
  Traits::edge_descriptor predecessor = {};
  boost::default_color_type color = boost::white_color;
  long distance = 0;
};
using Network = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Place, Link>;

}  // namespace

std::vector<char> FlowNetwork::min_cut(int source, int sink, std::int64_t& value) const {
  Network network(static_cast<std::size_t>(vertices_));
  for (const Edge& e : edges_) {
    auto there = boost::add_edge(e.from, e.to, network).first;
    auto back = boost::add_edge(e.to, e.from, network).first;
    network[there].capacity = std::min(e.capacity, infinite);
    network[there].reverse = back;
    network[back].reverse = there;
  }
  value = boost::boykov_kolmogorov_max_flow(
      network, boost::get(&Link::capacity, network), boost::get(&Link::residual, network),
      boost::get(&Link::reverse, network), boost::get(&Place::predecessor, network), boost::get(&Place::color, network),
      boost::get(&Place::distance, network), boost::get(boost::vertex_index, network), source, sink);

  // The vertices that can still reach the sink: walk backwards along edges with residual capacity.
  std::vector<char> sink_side(static_cast<std::size_t>(vertices_), 0);
  std::vector<int> open = {sink};
  sink_side[static_cast<std::size_t>(sink)] = 1;
  while (!open.empty()) {
    int v = open.back();
    open.pop_back();
    for (auto [e, end] = boost::out_edges(static_cast<std::size_t>(v), network); e != end; ++e) {
      auto from = boost::target(*e, network);
      if (sink_side[from] || network[network[*e].reverse].residual == 0) continue;
      sink_side[from] = 1;
      open.push_back(static_cast<int>(from));
    }
  }
  return sink_side;
}

}  // namespace partita
