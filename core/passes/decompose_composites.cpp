// Replaces composite operators by what the compiler lowers: their compile_decompose, else their decompose if the record
// has no lowering, body or evaluation. New calls are placed before the node, so the walk visits and decomposes them
// too.

#include <algorithm>
#include <numeric>

#include "core/ir/place.h"
#include "core/ir/replace_uses.h"
#include "core/ops/record/composite_call.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/schema.h"
#include "core/passes/pass.h"
#include "core/tensor/significant_strides.h"

namespace partita {
namespace {

/// Precondition: equal sizes.
bool same_layout(const TensorMeta& a, const TensorMeta& b) {
  if (!a.strides_known || !b.strides_known || a.strides.size() != b.strides.size()) return true;
  return same_significant_strides(a.sizes, a.strides, b.strides);
}

/// Copies `value` if its strides differ from the promised ones. The views in a decomposition may give other strides
/// than the operator does.
Arg laid_out(Builder& build, const Arg& value, const Meta& promised) {
  const TensorMeta* wanted = promised.tensor();
  const TensorMeta* found = value.node() ? value.node()->meta.tensor() : nullptr;
  if (!wanted || !found) return value;
  const auto evaluate = [&](SymExpr condition) {
    return build.graph.shapes->evaluate(condition, "the layout of a decomposed call");
  };
  if (wanted->sizes != found->sizes) {  // a guard may make them equal
    const auto equal = [&](SymExpr a, SymExpr b) {
      const auto same = evaluate(sym_eq(a, b));
      return same && *same;
    };
    if (!std::ranges::equal(wanted->sizes, found->sizes, equal) ||
        std::ranges::equal(wanted->strides, found->strides, equal))
      return value;
  }
  if (same_layout(*wanted, *found)) return value;
  for (MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d})
    if (same_significant_strides(wanted->sizes, strides_for(format, wanted->sizes), wanted->strides))
      return build.call("aten.clone.default", {value}, {{"memory_format", format}});
  // Row-major in the order of the strides.
  std::vector<std::size_t> order(wanted->strides.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  bool known = true;
  std::ranges::stable_sort(order, [&](std::size_t d, std::size_t e) {
    const auto farther = evaluate(sym_lt(wanted->strides[e], wanted->strides[d]));
    known = known && farther;
    return farther && *farther;
  });
  if (!known) return value;
  std::vector<Arg> there, back(order.size());
  for (std::size_t d : order) {
    back[d] = static_cast<std::int64_t>(there.size());
    there.emplace_back(static_cast<std::int64_t>(d));
  }
  Node* copy = build.call("aten.permute.default", {value, Arg::list(std::move(there))});
  copy = build.call("aten.clone.default", {copy}, {{"memory_format", MemoryFormat::Contiguous}});
  return build.call("aten.permute.default", {copy, Arg::list(std::move(back))});
}

/// What the decomposition does not cover, such as a number that is known only at run time, the record may evaluate.
bool is_evaluated_instead(const Node& node, const Diagnostic& refused) {
  const OpRecord* record = find_record(node.op());
  return refused.fault == Fault::Unsupported && record && record->eval;
}

/// Removes the nodes that a decomposition of `node` made before it was refused.
void remove_from(Graph& graph, Node& node, std::size_t first_new) {
  while (Node* made = node.previous()) {
    if (made->id() < first_new) break;
    graph.erase(made);
  }
}

}  // namespace

Result<bool> decompose_composites(Graph& graph, PassContext& context) {
  bool changed = false;
  for (Node* node = graph.first(); node;) {
    if (!decomposes_for_compiler(*node) || !context.may_rewrite("decompose", *node)) {
      node = node->next();
      continue;
    }
    Node* before = node->previous();
    const std::size_t first_new = graph.id_limit();
    auto value = decompose(*node, true);
    if (!value && is_evaluated_instead(*node, value.error())) {
      remove_from(graph, *node, first_new);
      node = node->next();
      continue;
    }
    if (!value) return at_node(std::move(value).error(), *node);
    if (!find_schema(node->op())->is_view) {
      Builder build(graph, node, node->origin);
      *value = laid_out(build, *value, node->meta);
    }
    TRY_DO(replace_uses(*node, *value));
    const std::string name = node->name();
    Node* result = value->node();
    graph.erase(node);
    if (result && result->id() >= first_new) graph.rename(result, name);
    changed = true;
    node = before ? before->next() : graph.first();
  }
  return changed;
}

}  // namespace partita
