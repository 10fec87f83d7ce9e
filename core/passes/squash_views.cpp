// Squashes chains of views: permute of permute, transpose of transpose, t of t, as_strided of as_strided. Dimension
// shuffles are treated as permutations. A chain of two becomes aten.permute of the composed order, or the source itself
// if that order is the identity.
#include <algorithm>
#include <numeric>
#include <optional>

#include "core/ops/record.h"
#include "core/passes/pass.h"
#include "core/passes/substitute.h"

namespace partita {
namespace {

using Order = std::vector<std::int64_t>;

std::optional<std::int64_t> dimension(const Arg& a, std::int64_t rank) {
  const auto* d = a.get<std::int64_t>();
  if (!d || *d < -rank || *d >= rank) return std::nullopt;
  return *d < 0 ? *d + rank : *d;
}

/// Result dimension i is source dimension order[i]; nullopt when the node shuffles nothing.
std::optional<Order> shuffle(const Node& node) {
  static const Op* const permute = Op::torch("aten.permute.default");
  static const Op* const transpose = Op::torch("aten.transpose.int");
  static const Op* const t = Op::torch("aten.t.default");
  const TensorMeta* meta = node.meta.tensor();
  if (!meta || (!node.is(permute) && !node.is(transpose) && !node.is(t))) return std::nullopt;
  const Args args = bound_arguments(node);
  const auto rank = static_cast<std::int64_t>(meta->dim());
  Order order(meta->dim());
  std::iota(order.begin(), order.end(), 0);
  if (node.is(permute)) {
    const auto* dims = args.size() > 1 ? args[1].get<ArgList>() : nullptr;
    if (!dims || dims->items.size() != order.size()) return std::nullopt;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto d = dimension(dims->items[i], rank);
      if (!d) return std::nullopt;
      order[i] = *d;
    }
  } else if (node.is(transpose)) {
    if (args.size() < 3 || rank == 0) return std::nullopt;
    const auto a = dimension(args[1], rank), b = dimension(args[2], rank);
    if (!a || !b) return std::nullopt;
    std::swap(order[static_cast<std::size_t>(*a)], order[static_cast<std::size_t>(*b)]);
  } else if (rank == 2) {
    std::swap(order[0], order[1]);
  }
  return order;
}

const Op* as_strided() {
  static const Op* const op = Op::torch("aten.as_strided.default");
  return op;
}

/// Squashes as_strided of as_strided. Both address the storage; without an offset of its own, the outer one starts
/// where the inner one starts.
bool squash_as_strided(Node* node) {
  Node* inner = node->is(as_strided()) ? node->args()[0].node() : nullptr;
  if (!inner || !inner->is(as_strided())) return false;
  Args args = bound_arguments(*node);
  const Args through = bound_arguments(*inner);
  args[0] = through[0];
  if (args[3].is_none()) args[3] = through[3];
  node->set_args(std::move(args), {});
  return true;
}

bool squash(Node* node, const Aliases& aliases) {
  const auto outer = shuffle(*node);
  Node* middle = outer ? node->args()[0].node() : nullptr;
  const auto inner = middle ? shuffle(*middle) : std::nullopt;
  Node* source = inner ? middle->args()[0].node() : nullptr;
  if (!source) return false;
  Order order;
  for (std::int64_t d : *outer) order.push_back((*inner)[static_cast<std::size_t>(d)]);
  if (std::ranges::is_sorted(order)) {
    if (!may_stand_for(*source, *node, aliases)) return false;
    node->replace_all_uses_with(source);
    return true;
  }
  std::vector<Arg> dims;
  for (std::int64_t d : order) dims.emplace_back(d);
  node->set_op(Op::torch("aten.permute.default"));
  node->set_args({source, Arg::list(std::move(dims))}, {});
  return true;
}

}  // namespace

Result<bool> squash_views(Graph& graph, PassContext&) {
  bool changed = false;
  const Aliases aliases(graph);
  for (Node* node : graph)
    if (squash(node, aliases) || squash_as_strided(node)) changed = true;
  if (changed) graph.eliminate_dead([](const Node& n) { return !shuffle(n) && !n.is(as_strided()); });
  return changed;
}

}  // namespace partita
