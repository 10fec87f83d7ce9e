#include "core/diff/match_nodes.h"

#include <algorithm>
#include <ranges>

#include "core/base/hash.h"
#include "core/ir/print.h"

namespace partita {

/// What each node of a graph is known by.
struct NodeMatch::Side {
  explicit Side(const Graph& g);

  const Graph& graph;
  std::unordered_map<const Node*, std::uint64_t> op, origin, literals, meta;
  std::unordered_map<const Node*, std::uint64_t> above;  ///< of all that it is computed from, and itself
  std::unordered_map<const Node*, std::uint64_t> below;  ///< of all that is computed from it, and itself
};

NodeMatch::Side::Side(const Graph& g) : graph(g) {
  std::vector<const Node*> order;
  for (const Node* n : graph) {
    order.push_back(n);
    op[n] = hash64(n->op()->name, static_cast<std::uint64_t>(n->op()->kind));
    origin[n] = 0;
    if (n->origin)
      origin[n] = hash_combine(hash64(n->origin->of_user().code), hash64(n->origin->of_user().function)) +
                  hash64(n->origin->modules);
    // A literal that is an attribute's path says where the value comes from; a placeholder's target is a name.
    std::string text = n->is_placeholder() ? std::string() : n->target;
    const auto blank = [](const Node*) { return Arg(ArgName{"_"}); };
    for (const Arg& a : n->args()) text += print(map_nodes(a, blank)) + ",";
    for (const auto& [name, a] : n->kwargs()) text += name + "=" + print(map_nodes(a, blank)) + ",";
    literals[n] = hash64(text);
    meta[n] = hash64(annotation(n->meta));
    std::uint64_t h = op[n];
    for (const Node* input : n->inputs()) h = hash_combine(h, above[input]);
    above[n] = h;
  }
  for (const Node* n : std::views::reverse(order)) {
    std::uint64_t h = op[n], users = 0;
    for (const Node* user : n->users()) {
      const std::vector<Node*> inputs = user->inputs();
      const auto at = std::ranges::find(inputs, n) - inputs.begin();
      users += hash_combine(below[user], static_cast<std::uint64_t>(at));
    }
    below[n] = hash_combine(h, users);
  }
}

void NodeMatch::pair(const Node* a, const Node* b) {
  to_b_[a] = b;
  to_a_[b] = a;
}

namespace {

std::unordered_map<std::uint64_t, std::vector<const Node*>> unpaired_by(const auto& side, const auto& keys,
                                                                        const auto& paired) {
  std::unordered_map<std::uint64_t, std::vector<const Node*>> out;
  for (const Node* n : side.graph) {
    if (paired.contains(n)) continue;
    std::uint64_t key = n->is_placeholder() ? 1 : n->is_output() ? 2 : 3;
    for (const auto& part : keys) key = hash_combine(key, (side.*part).at(n));
    out[key].push_back(n);
  }
  return out;
}

}  // namespace

/// Pairs nodes with equal keys in their order, where both graphs have as many.
void NodeMatch::pair_equal_counts(const Side& a, const Side& b, std::initializer_list<Keys> keys, bool inputs_too) {
  const auto of_a = unpaired_by(a, keys, to_b_), of_b = unpaired_by(b, keys, to_a_);
  for (const auto& [key, nodes] : of_a) {
    const auto other = of_b.find(key);
    if (other == of_b.end() || other->second.size() != nodes.size()) continue;
    if (!inputs_too && nodes.front()->is_placeholder()) continue;
    for (std::size_t i = 0; i < nodes.size(); ++i) pair(nodes[i], other->second[i]);
  }
}

/// How many inputs and users of both are pairs, at the same place among the arguments.
int NodeMatch::common_neighbours(const Node& a, const Node& b) const {
  int common = 0;
  const std::vector<Node*> inputs = a.inputs(), others = b.inputs();
  for (std::size_t i = 0; i < std::min(inputs.size(), others.size()); ++i) common += in_b(inputs[i]) == others[i];
  for (const Node* user : a.users()) {
    const Node* other = in_b(user);
    if (!other) continue;
    const std::vector<Node*> read = user->inputs(), other_read = other->inputs();
    const auto at = static_cast<std::size_t>(std::ranges::find(read, &a) - read.begin());
    common += at < other_read.size() && other_read[at] == &b;
  }
  return common;
}

/// Pairs nodes with equal keys whose inputs and users are pairs, those with most of them first. False: none was found.
bool NodeMatch::pair_by_neighbours(const Side& a, const Side& b, std::initializer_list<Keys> keys, int least) {
  constexpr std::size_t most = 250'000;  // of one key; what is repeated more often is left as it is
  struct Candidate {
    int common;
    const Node *a, *b;
  };
  std::vector<Candidate> candidates;
  const auto of_a = unpaired_by(a, keys, to_b_), of_b = unpaired_by(b, keys, to_a_);
  for (const auto& [key, nodes] : of_a) {
    const auto other = of_b.find(key);
    if (other == of_b.end() || nodes.size() * other->second.size() > most) continue;
    for (const Node* x : nodes)
      for (const Node* y : other->second)
        if (const int common = common_neighbours(*x, *y); common >= least) candidates.push_back({common, x, y});
  }
  std::ranges::sort(candidates, [](const Candidate& x, const Candidate& y) {
    return std::tuple(-x.common, x.a->id(), x.b->id()) < std::tuple(-y.common, y.a->id(), y.b->id());
  });
  bool found = false;
  for (const Candidate& c : candidates) {
    if (to_b_.contains(c.a) || to_a_.contains(c.b)) continue;
    pair(c.a, c.b);
    found = true;
  }
  return found;
}

NodeMatch::NodeMatch(const Graph& a, const Graph& b) {
  const Side x(a), y(b);
  // The surest first: the same place in the whole graph, then what only precedes or follows, then the line alone.
  pair_equal_counts(x, y, {&Side::above, &Side::below, &Side::origin, &Side::literals, &Side::meta});
  pair_equal_counts(x, y, {&Side::above, &Side::below, &Side::origin});
  pair_equal_counts(x, y, {&Side::above, &Side::origin}, false);  // above inputs is nothing
  pair_equal_counts(x, y, {&Side::below, &Side::origin});
  const std::initializer_list<Keys> steps[] = {{&Side::op, &Side::origin}, {&Side::op, &Side::meta}, {&Side::op}};
  for (const auto& keys : steps)
    while (pair_by_neighbours(x, y, keys, 1)) {
    }
  pair_equal_counts(x, y, {&Side::op, &Side::origin});
  // Another operator in the same place: at the same line, or between the same nodes.
  while (pair_by_neighbours(x, y, {&Side::origin}, 1) || pair_by_neighbours(x, y, {}, 2)) {
  }
}

}  // namespace partita
