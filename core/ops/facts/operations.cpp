#include "core/ops/facts/operations.h"

#include <string_view>
#include <unordered_map>

#include "core/ops/record/record.h"
#include "core/ops/schema/schema.h"

namespace partita {
namespace {

using Count = std::optional<SymExpr>;

/// Kernels that have no record, since other devices run them: their calls are in graphs that were made there.
struct OperationsRow {
  std::string_view base;
  Count (*count)(const Node& call);
};
constexpr OperationsRow operations_rows[] = {
    {"aten._scaled_dot_product_flash_attention", [](const Node& n) { return attention_operations(n, 0, false); }},
    {"aten._scaled_dot_product_efficient_attention", [](const Node& n) { return attention_operations(n, 0, false); }},
    {"aten._scaled_dot_product_cudnn_attention", [](const Node& n) { return attention_operations(n, 0, false); }},
    {"aten._scaled_dot_product_fused_attention_overrideable",
     [](const Node& n) { return attention_operations(n, 0, false); }},
    {"aten._scaled_dot_product_attention_math_for_mps",
     [](const Node& n) { return attention_operations(n, 0, false); }},
    {"aten._scaled_dot_product_flash_attention_backward",
     [](const Node& n) { return attention_operations(n, 1, true); }},
    {"aten._scaled_dot_product_efficient_attention_backward",
     [](const Node& n) { return attention_operations(n, 1, true); }},
    {"aten._scaled_dot_product_cudnn_attention_backward",
     [](const Node& n) { return attention_operations(n, 1, true); }},
    {"aten._scaled_dot_product_fused_attention_overrideable_backward",
     [](const Node& n) { return attention_operations(n, 1, true); }},
    {"aten.mm", [](const Node& n) { return product_operations(n, 0); }},
    {"aten.bmm", [](const Node& n) { return product_operations(n, 0); }},
    {"aten.addmm", [](const Node& n) { return product_operations(n, 1); }},
    {"aten.baddbmm", [](const Node& n) { return product_operations(n, 1); }},
    {"aten._addmm_activation", [](const Node& n) { return product_operations(n, 1); }},
    {"aten._scaled_mm", [](const Node& n) { return product_operations(n, 0); }},
    {"aten._weight_int4pack_mm", [](const Node& n) { return product_operations(n, 0); }},
    {"aten._weight_int8pack_mm", [](const Node& n) { return product_operations(n, 0); }},
    {"aten.cudnn_convolution", [](const Node& n) { return convolution_operations(n, n.meta.tensor(), 0, false); }},
    {"aten.cudnn_convolution_relu", [](const Node& n) { return convolution_operations(n, n.meta.tensor(), 0, false); }},
    {"aten.cudnn_convolution_add_relu",
     [](const Node& n) { return convolution_operations(n, n.meta.tensor(), 0, false); }},
    {"aten.cudnn_convolution_transpose",
     [](const Node& n) { return convolution_operations(n, n.meta.tensor(), 0, true); }},
    {"aten.miopen_convolution", [](const Node& n) { return convolution_operations(n, n.meta.tensor(), 0, false); }},
    {"aten._slow_conv2d_forward", [](const Node& n) { return convolution_operations(n, n.meta.tensor(), 0, false); }},
    {"aten._conv_depthwise2d", [](const Node& n) { return convolution_operations(n, n.meta.tensor(), 0, false); }},
    {"aten.conv_depthwise3d", [](const Node& n) { return convolution_operations(n, n.meta.tensor(), 0, false); }},
};

/// Counts the calls that the call is decomposed into; nullopt if none of these is counted.
Result<Count> of_parts(const Node& call) {
  Graph parts;
  if (const auto& shapes = call.graph().shapes) {  // the graph of the call takes no guards of this
    for (const auto& [symbol, hint] : shapes->hints()) parts.shapes->set_hint(symbol, hint);
    for (const auto& [symbol, range] : shapes->ranges()) parts.shapes->set_range(symbol, range);
  }
  Node* trial = parts.copy_node(call, [&](Node* in) { return Arg(parts.placeholder(in->name(), in->meta)); });
  TRY_DO(decompose(*trial));
  Count total;
  for (const Node* part : parts)
    if (part != trial && part->op()->is_call())
      if (const Count one = counted_operations(*part)) total = total.value_or(0) + *one;
  return total;
}

}  // namespace

std::optional<SymExpr> product_operations(const Node& call, std::size_t left) {
  const TensorMeta *out = call.meta.tensor(), *a = tensor_argument(call, left);
  if (!out || !a || a->sizes.empty()) return std::nullopt;
  return 2 * out->numel() * a->sizes.back();
}

std::optional<SymExpr> convolution_operations(const Node& call, const TensorMeta* result, std::size_t input,
                                              bool transposed) {
  const TensorMeta *windows = transposed ? tensor_argument(call, input) : result,
                   *weight = tensor_argument(call, input + 1);
  if (!windows || !weight || weight->dim() < 2) return std::nullopt;
  SymExpr total = 2 * windows->numel();
  for (std::size_t d = 1; d < weight->dim(); ++d) total = total * weight->sizes[d];
  return total;
}

std::optional<SymExpr> attention_operations(const Node& call, std::size_t query, bool backward) {
  const TensorMeta *q = tensor_argument(call, query), *k = tensor_argument(call, query + 1),
                   *v = tensor_argument(call, query + 2);
  if (!q || !k || !v || q->dim() < 2 || k->dim() < 2 || v->dim() < 2) return std::nullopt;
  SymExpr pairs = k->sizes[k->dim() - 2];
  for (std::size_t d = 0; d + 1 < q->dim(); ++d) pairs = pairs * q->sizes[d];
  // The backward computes the scores again, and from these the gradients of query and key; of value and of the
  // probabilities it needs one product each.
  const int by_key = backward ? 3 : 1, by_value = backward ? 2 : 1;
  return 2 * pairs * (by_key * q->sizes.back() + by_value * v->sizes.back());
}

std::optional<SymExpr> counted_operations(const Node& call) {
  if (const OpRecord* record = find_record(call.op()); record && record->cost.operations)
    return record->cost.operations(call);
  const Schema* schema = find_schema(call.op());
  if (!schema) return std::nullopt;
  for (const OperationsRow& row : operations_rows)
    if (schema->base == row.base) return row.count(call);
  if (!schema->composite_implicit) return std::nullopt;
  // Whether anything in it is counted depends on the operator alone, and most are asked often.
  static thread_local std::unordered_map<const Op*, bool> counted;
  const auto known = counted.find(call.op());
  if (known != counted.end() && !known->second) return std::nullopt;
  const Result<Count> total = of_parts(call);
  if (!total) return std::nullopt;
  counted.emplace(call.op(), total->has_value());
  return *total;
}

}  // namespace partita
