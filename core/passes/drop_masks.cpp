// Attention without masks that hide nothing: models make them of attention masks that are all ones.
#include <algorithm>

#include "core/ops/record/call.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite.h"

namespace partita {
namespace {

/// Is it 0, which is added to scores, or True everywhere?
bool hides_nothing(Node& mask) {
  static const Pattern filled("full(sizes, value, dtype, layout, device, pin)"), repeated("expand(x, sizes)");
  if (const auto m = repeated.of(mask)) return (*m)["x"].node() && hides_nothing(*(*m)["x"].node());
  const auto m = filled.of(mask);
  const TensorMeta* meta = mask.meta.tensor();
  if (!m || !meta) return false;
  const auto value = as_number((*m)["value"]);
  return value && as_double(*value) == (meta->dtype == DType::Bool ? 1 : 0);
}

}  // namespace

Result<bool> drop_masks(Graph& graph, PassContext& context) {
  static const Pattern calls[] = {
      Pattern("_scaled_dot_product_flash_attention_for_cpu(q, k, v, p, causal, mask, scale)"),
      Pattern("_scaled_dot_product_flash_attention_for_cpu_backward(grad, q, k, v, out, lse, p, causal, mask, scale)")};
  bool changed = false;
  for (Node* node : graph)
    for (const Pattern& p : calls) {
      const auto call = p.of(*node);
      Node* const mask = call ? (*call)["mask"].node() : nullptr;
      const std::vector<Node*> read = mask ? node->inputs() : std::vector<Node*>();
      if (!mask || std::ranges::count(read, mask) != 1 || !hides_nothing(*mask)) continue;
      if (!context.may_rewrite("mask", *node)) continue;
      node->replace_input(mask, Arg());
      changed = true;
    }
  return changed;
}

}  // namespace partita
