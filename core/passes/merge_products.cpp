// Makes one product of a sum of products, a b + c d = [a c] [b; d], where what is multiplied is small beside the
// result. The gradient of a weight that is used many times, as in a recurrent network, is such a sum, and each of its
// products would read and write all of the result.

#include <algorithm>
#include <unordered_set>

#include "core/ir/place.h"
#include "core/ops/facts/effects.h"
#include "core/ops/facts/views.h"
#include "core/ops/record/call.h"
#include "core/ops/record/record.h"
#include "core/passes/pass.h"
#include "core/passes/value_memory.h"

namespace partita {
namespace {

/// A product of two matrices, added to something or not.
struct Product {
  Arg added, left, right;  ///< added: None in the first of a sum
  std::int64_t depth = 0;
};

/// The call as such a product, if factors are 1 and sizes numbers.
std::optional<Product> product_of(const Node& node) {
  const OpRecord* record = node.op()->is_call() ? find_record(node.op()) : nullptr;
  const bool adds = record && record->library == LibraryRoutine::AddMatmul;
  if (!adds && !(record && record->library == LibraryRoutine::Matmul)) return std::nullopt;
  const Args args = bound_arguments(node);
  const std::size_t first = adds ? 1 : 0;
  if (args.size() < first + 2) return std::nullopt;
  for (std::size_t i = first + 2; i < args.size(); ++i)
    if (!(args[i] == Arg(std::int64_t{1})) && !(args[i] == Arg(1.0))) return std::nullopt;
  Product p{adds ? args[0] : Arg(), args[first], args[first + 1]};
  const TensorMeta *out = node.meta.tensor(), *left = p.left.node() ? p.left.node()->meta.tensor() : nullptr;
  if (!out || out->dim() != 2 || !left || left->dim() != 2 || !p.right.node() || !concrete(out->sizes) ||
      !concrete(left->sizes))
    return std::nullopt;
  p.depth = left->sizes[1].as_int();
  return p;
}

/// [tensors] along `dim`; of transposed ones, the transpose of what they show put together, whose parts lie in one
/// piece.
Node* joined(Builder& build, const std::vector<Arg>& tensors, std::int64_t dim) {
  const auto is_transpose = [](const Arg& a) {
    const auto order = dimension_order(*a.node());
    return order && *order == std::vector<std::int64_t>{1, 0};
  };
  if (!std::ranges::all_of(tensors, is_transpose)) return build.call("aten.cat.default", {Arg::list(tensors), dim});
  std::vector<Arg> shown;
  for (const Arg& a : tensors) shown.emplace_back(a.node()->args()[0]);
  return build.call("aten.t.default", {build.call("aten.cat.default", {Arg::list(std::move(shown)), 1 - dim})});
}

/// The products of a sum that ends with `last`, from the first one on.
std::vector<Product> sum_ending_with(const Node& last, std::unordered_set<const Node*>& seen) {
  std::vector<Product> sum;
  const Node* node = &last;
  for (auto p = product_of(*node); p; p = product_of(*node)) {
    seen.insert(node);
    sum.push_back(*p);
    node = p->added.node();
    const TensorMeta *t = node ? node->meta.tensor() : nullptr, *out = last.meta.tensor();
    if (!t || node->users().size() != 1 || t->sizes != out->sizes || t->dtype != out->dtype) break;
  }
  std::ranges::reverse(sum);
  return sum;
}

}  // namespace

Result<bool> merge_products(Graph& graph, PassContext& context) {
  std::vector<Node*> nodes;
  for (Node* node : graph) nodes.push_back(node);
  std::unordered_set<const Node*> seen;
  bool changed = false;
  // From the end, so that a sum is met as a whole.
  for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
    Node* last = *at;
    if (seen.contains(last)) continue;
    const std::vector<Product> sum = sum_ending_with(*last, seen);
    if (sum.size() < 2) continue;
    const SymList& sizes = last->meta.tensor()->sizes;
    const std::int64_t rows = sizes[0].as_int(), columns = sizes[1].as_int();
    std::int64_t copied = 0;
    for (const Product& p : sum) copied += p.depth * (rows + columns);
    if (2 * copied > static_cast<std::int64_t>(sum.size()) * rows * columns || !context.may_rewrite("merged", *last))
      continue;
    TRY_DO(catch_raised_at<void>(*last, [&]() -> Status {
      Builder build(graph, last, last->origin);
      std::vector<Arg> left, right;
      for (const Product& p : sum) left.push_back(p.left), right.push_back(p.right);
      Node *a = joined(build, left, 1), *b = joined(build, right, 0);
      const Arg added = sum.front().added;
      last->replace_all_uses_with(added.is_none() ? build.call("aten.mm.default", {a, b})
                                                  : build.call("aten.addmm.default", {added, a, b}));
      return {};
    }));
    changed = true;
  }
  if (changed) graph.eliminate_dead(has_effect);
  return changed;
}

}  // namespace partita
