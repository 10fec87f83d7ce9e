// Min-cut partitioning: heuristics as in PyTorch ban nodes from being recomputed; then each node becomes an edge that
// costs its bytes in a flow network, and the minimum cut is what is saved.
#include "core/partition/min_cut.h"

#include <algorithm>
#include <queue>
#include <set>

// GCC 12 reports Boost's optional edge iterators as uninitialised; they are not.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#pragma GCC diagnostic pop

#include "core/ops/facts/alias.h"
#include "core/ops/record/record.h"
#include "core/partition/cost.h"

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

// The price of saving one byte of an activation. A byte of an input costs 1. All recomputed arithmetic together costs
// less than one activation byte, so it only breaks ties between activations.
constexpr std::int64_t activation_byte = 1 << 16;

class MinCutSolver {
 public:
  MinCutSolver(const Graph& joint, const JointParts& parts, const CutOptions& options, const Pins& pins,
               const std::vector<char>& allowed)
      : joint_(joint), parts_(parts), options_(options), pins_(pins), allowed_(allowed) {
    const std::size_t limit = joint.id_limit();
    cost_.resize(limit);
    bytes_.assign(limit, 0);
    operations_.assign(limit, 0);
    banned_.assign(limit, nullptr);
    for (Node* n : joint) {
      cost_[n->id()] = cost_class(*n);
      bytes_[n->id()] = bytes_of(*n);
      if (parts.forward(n)) operations_[n->id()] = operations_of(*n);
    }
  }

  Result<MinCut> solve() {
    find_bans();
    build();
    std::int64_t value = 0;
    std::vector<char> sink_side = network_.min_cut(source_, sink_, value);
    if (value >= FlowNetwork::infinite) return contradiction(sink_side);
    MinCut cut;
    for (Node* n : joint_) {
      if (n->is_output()) continue;
      if (!sink_side[in(n)] && sink_side[out(n)]) {
        cut.saved.push_back(n);
        cut.why.push_back(reason(n));
      }
      if (banned_[n->id()] && !n->is_placeholder()) cut.banned.push_back(n);
    }
    return cut;
  }

 private:
  int in(const Node* n) const { return 2 + 2 * static_cast<int>(n->id()); }
  int out(const Node* n) const { return in(n) + 1; }
  const CostClass& cost(const Node* n) const { return cost_[n->id()]; }
  bool pinned_save(const Node* n) const { return !pins_.save.empty() && pins_.save[n->id()]; }
  bool pinned_recompute(const Node* n) const {
    if (!pins_.recompute.empty() && pins_.recompute[n->id()]) return true;
    return !pinned_save(n) && tagged_recompute(*n);
  }
  bool is_allowed(const Node* n) const { return !allowed_.empty() && allowed_[n->id()]; }

  bool fusible(const Node* a, const Node* b) const {
    // A concatenation fuses with its inputs, but nothing fuses with its result.
    if (cost(b).concatenates) return true;
    return cost(a).fusible && cost(b).fusible;
  }

  void ban(const Node* n, const char* why) {
    if (banned_[n->id()] || cost(n).view || pinned_recompute(n)) return;
    bool final_ban = cost(n).random || cost(n).side_effect || n->is_placeholder() || pinned_save(n) ||
                     n->recompute == Recompute::MustSave;
    if (is_allowed(n) && !final_ban) return;
    banned_[n->id()] = why;
  }

  /// If the backward computes this value, must a kernel write it to memory?
  bool materialized_in_backward(const Node* node) const {
    if (cost(node).view) return false;
    std::vector<const Node*> open = {node};
    std::set<const Node*> seen = {node};
    while (!open.empty()) {
      const Node* current = open.back();
      open.pop_back();
      for (const Node* user : current->users()) {
        if (!parts_.forward(user) && !fusible(current, user)) return true;
        if (cost(user).view && seen.insert(user).second) open.push_back(user);
      }
    }
    return false;
  }

  const char* ban_reason(const Node* n) const {
    if (!n->op()->is_call() || n->is(Op::getitem())) return nullptr;
    if (pinned_save(n)) return "pinned: save";
    if (n->recompute == Recompute::MustSave) return "marked MUST_SAVE";
    // Unlike MUST_SAVE, a memory budget or a pin may override it.
    if (n->recompute == Recompute::PreferSave) return "marked PREFER_SAVE";
    if (n->meta.sym() && n->op()->kind != OpKind::Torch) return nullptr;
    const CostClass& c = cost(n);
    if (c.random) return "random values";
    if (c.side_effect) return "side effect";
    if (c.expensive) return "expensive to recompute";
    if (options_.ban_not_recomputable && !c.recomputable) return "not among the cheap operators";
    if (options_.ban_materialized_backward && materialized_in_backward(n))
      return "the backward would have to write it to memory";
    if (options_.ban_reductions) {
      std::int64_t read = 0;
      for (const Arg& a : n->args())
        if (Node* input = a.node()) read += bytes_[input->id()];
      if (bytes_[n->id()] * 4 < read) return "small result of a reduction";
    }
    return nullptr;
  }

  void find_bans() {
    for (Node* n : joint_) {
      if (n->is_output() || parts_.on_tangents[n->id()]) continue;
      if (n->is_placeholder())
        ban(n, "input");  // also one that is returned as a gradient, as the sizes of a tensor subclass are
      else if (!parts_.backward(n) && parts_.forward(n))
        if (const char* why = ban_reason(n)) ban(n, why);
    }
    if (options_.ban_used_far_apart) ban_used_far_apart();
    if (options_.ban_long_fusible_chains) ban_long_chains();
  }

  int order(const Node* n) const { return parts_.forward_order[n->id()]; }

  struct Earlier {
    bool operator()(const std::pair<int, const Node*>& a, const std::pair<int, const Node*>& b) const {
      return a.first > b.first;
    }
  };
  using Queue = std::priority_queue<std::pair<int, const Node*>, std::vector<std::pair<int, const Node*>>, Earlier>;

  /// The position of the first node after `starts` that cannot be fused with the values it reads; `last` if there is
  /// none before.
  int first_unfusible(const std::vector<const Node*>& starts, int last) const {
    Queue fused;
    std::set<const Node*> seen(starts.begin(), starts.end());
    int unfusible = last;
    for (const Node* n : starts) fused.emplace(order(n), n);
    while (!fused.empty() && fused.top().first < unfusible) {
      const Node* n = fused.top().second;
      fused.pop();
      for (const Node* user : n->users()) {
        if (!parts_.forward(user) || order(user) > last) continue;
        if (!fusible(n, user))
          unfusible = std::min(unfusible, order(user));
        else if (seen.insert(user).second)
          fused.emplace(order(user), user);
      }
    }
    return unfusible;
  }

  /// Bans recomputing a reader that is far from its input: if a node between a value's near and far readers cannot be
  /// fused, the two readers are unlikely to be fused with each other.
  void ban_used_far_apart() {
    for (Node* used : joint_) {
      if (!parts_.forward(used)) continue;
      std::vector<const Node*> readers;
      int last = -1;
      for (const Node* user : used->users())
        if (parts_.forward(user)) {
          readers.push_back(user);
          last = std::max(last, order(user));
        }
      if (readers.size() < 2) continue;
      int barrier = first_unfusible(readers, last);
      for (const Node* user : readers)
        if (order(user) > barrier && fusible(used, user)) ban(user, "read far from where its input is");
    }
  }

  /// Bans the end of a chain that spans more than 100 fusible nodes. Otherwise residual streams would be recomputed
  /// from the first layer on.
  void ban_long_chains() {
    std::vector<char> visited(joint_.id_limit(), 0);
    for (Node* start : joint_) {
      if (!parts_.forward(start) || visited[start->id()]) continue;
      Queue chain;
      chain.emplace(order(start), start);
      while (!chain.empty()) {
        const Node* n = chain.top().second;
        chain.pop();
        if (std::exchange(visited[n->id()], 1)) continue;
        if (order(n) > order(start) + 100 && chain.empty()) {
          ban(n, "end of a long chain of fusible operators");
          break;
        }
        for (const Node* user : n->users())
          if (parts_.forward(user) && fusible(n, user) && !banned_[user->id()]) chain.emplace(order(user), user);
      }
    }
  }

  /// The argument of detach or alias; else null.
  static const Node* detached(const Node* n) {
    const OpRecord* record = n->is(Op::getitem()) ? nullptr : find_record(n->op());
    return record && record->role == Role::WholeView ? n->args()[0].node() : nullptr;
  }

  std::int64_t price(const Node* n) const {
    if (pinned_save(n)) return 0;
    if (n->meta.sym()) return n->meta.sym()->is_float() ? 4 * activation_byte : activation_byte;
    if (is_opaque(*n)) return 0;
    if (!n->meta.tensor()) return FlowNetwork::infinite;
    if (n->is_placeholder()) return bytes_[n->id()] + 1;
    if (cost(n).view) {
      const Node* whole = memory_owner(n);
      if (whole->is_placeholder()) return FlowNetwork::infinite;
      // Of a value and its detaches, which cost the same, the last is saved, as in PyTorch.
      if (const Node* value = detached(n)) return price(value);
      if (bytes_[n->id()] >= bytes_[whole->id()]) return FlowNetwork::infinite;
    }
    return bytes_[n->id()] * activation_byte + 1;
  }

  void build() {
    source_ = network_.vertex();
    sink_ = network_.vertex();
    for (std::size_t i = 0; i < 2 * joint_.id_limit(); ++i) network_.vertex();
    std::int64_t total = 1;
    for (Node* n : joint_) total += operations_[n->id()];
    for (Node* n : joint_) {
      if (n->is_output()) continue;
      if (parts_.on_tangents[n->id()] || pinned_recompute(n)) {
        network_.edge(in(n), sink_, FlowNetwork::infinite);
        continue;
      }
      if (parts_.returned_gradient[n->id()] || pinned_save(n)) network_.edge(out(n), sink_, FlowNetwork::infinite);
      if (banned_[n->id()]) {
        network_.edge(source_, in(n), FlowNetwork::infinite);
      } else if (operations_[n->id()] > 0) {
        // Cutting this edge means to recompute the node.
        double share = static_cast<double>(operations_[n->id()]) / static_cast<double>(total);
        network_.edge(source_, in(n), 1 + static_cast<std::int64_t>(share * static_cast<double>(activation_byte) / 2));
      }
      network_.edge(in(n), out(n), price(n));
      std::vector<Node*> readers = n->users();
      std::sort(readers.begin(), readers.end());
      readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
      for (Node* user : readers)
        if (!user->is_output()) network_.edge(out(n), in(user), FlowNetwork::infinite);
    }
  }

  const char* reason(const Node* n) const {
    if (pinned_save(n)) return "pinned: save";
    if (banned_[n->id()]) return banned_[n->id()];
    if (const Node* value = detached(n)) return reason(value);
    if (n->is(Op::getitem())) return "result of an operator that is not recomputed";
    return "cheaper to save than what it is computed from";
  }

  Diagnostic contradiction(const std::vector<char>& sink_side) const {
    Diagnostic d = input_error("partition.pin",
                               "no partition satisfies the pins: a value that may not be saved depends on one "
                               "that may not be recomputed; drop a pin",
                               {.graph = joint_.name});
    for (Node* n : joint_)
      if (!n->is_output() && banned_[n->id()] && sink_side[in(n)])
        d.notes.push_back(n->name() + " may not be recomputed: " + banned_[n->id()]);
    return d;
  }

  const Graph& joint_;
  const JointParts& parts_;
  const CutOptions& options_;
  const Pins& pins_;
  const std::vector<char>& allowed_;
  std::vector<CostClass> cost_;
  std::vector<std::int64_t> bytes_;
  std::vector<std::int64_t> operations_;
  std::vector<const char*> banned_;  ///< by id: why the node may not be recomputed; null if it may
  FlowNetwork network_;
  int source_ = 0;
  int sink_ = 0;
};

}  // namespace

Result<MinCut> min_cut(const Graph& joint, const JointParts& parts, const CutOptions& options, const Pins& pins,
                       const std::vector<char>& allowed) {
  return MinCutSolver(joint, parts, options, pins, allowed).solve();
}

}  // namespace partita
