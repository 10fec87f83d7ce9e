#include "core/ops/schema/in_place.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "core/ops/record/record.h"
#include "core/ops/schema/functional_variant.h"

namespace partita {
namespace {

constexpr std::array resizes = {std::string_view("aten.resize_.default"), std::string_view("aten.resize_as_.default"),
                                std::string_view("prims.resize.default")};
constexpr std::array takers = {std::string_view("aten.set_.source_Tensor"), std::string_view("aten.set_.default"),
                               std::string_view("aten.set_.source_Tensor_storage_offset")};
constexpr std::array untraced = {
    std::string_view("aten.logical_not_.default"), std::string_view("aten.logical_and_.default"),
    std::string_view("aten.logical_or_.default"), std::string_view("aten.logical_xor_.default")};
constexpr std::array augmented = {std::string_view("iadd"), std::string_view("isub"),      std::string_view("imul"),
                                  std::string_view("ipow"), std::string_view("itruediv"),  std::string_view("imod"),
                                  std::string_view("iand"), std::string_view("ifloordiv"), std::string_view("ior"),
                                  std::string_view("ixor")};

bool changes_geometry(const Op* op) {
  if (op->kind == OpKind::Method)
    return op->name.ends_with('_') && std::ranges::any_of(find_overloads("aten." + op->name), [](const Schema* s) {
             return changes_geometry(Op::torch(s->name));
           });
  if (op->kind != OpKind::Torch) return false;
  if (std::ranges::find(resizes, op->name) != resizes.end()) return true;
  return op->name.find("_.") != std::string::npos && (view_in_place(op) || takes_memory(op));
}

/// Is the call's result its first argument itself? That of resolve_conj is, and of `to` where there is nothing to do.
bool gives_argument(const Node& node) {
  const OpRecord* record = find_record(node.op());
  if (!record || !record->decompose || record->fake) return false;
  Graph scratch;
  scratch.shapes = node.graph().shapes;
  std::unordered_map<const Node*, Node*> given;
  for (const Node* input : node.inputs())
    if (!given.contains(input)) given[input] = scratch.placeholder(input->name(), input->meta);
  Node* call = scratch.copy_node(node, [&](Node* n) -> Arg { return given.at(n); });
  const Result<Arg> result = decompose(*call);
  return result && result->node() == given.at(node.args()[0].node());
}

/// The argument that the call changes or leaves as it is, and returns; null when it returns something else.
Node* returned_argument(const Node& node) {
  Node* self = node.op()->is_call() && !node.args().empty() ? node.args()[0].node() : nullptr;
  if (!self) return nullptr;
  if (node.op()->kind == OpKind::Method)
    return node.op()->name.ends_with('_') && !node.op()->name.ends_with("__") ? self : nullptr;
  if (node.op()->kind == OpKind::Function)
    return std::ranges::find(augmented, node.op()->brief()) != augmented.end() ? self : nullptr;
  const Schema* schema = find_schema(node.op());
  const bool itself = schema && schema->is_mutable && schema->args[0].is_write && schema->returns.size() == 1 &&
                      !schema->returns[0].is_list;
  return itself || gives_argument(node) ? self : nullptr;
}

}  // namespace

const Op* view_in_place(const Op* op) {
  const Schema* schema = op->kind == OpKind::Torch ? find_schema(op) : nullptr;
  if (!schema || !schema->is_mutable) return nullptr;
  // Composites; both are names of transpose_.
  if (schema->base == "aten.swapaxes_" || schema->base == "aten.swapdims_") return Op::torch("aten.transpose.int");
  const auto variant = functional_variant(op);
  return variant && variant->schema->is_view ? variant->op : nullptr;
}

bool takes_memory(const Op* op) {
  return std::ranges::find(takers, op->name) != takers.end();
}

bool resizes_storage(const Op* op) {
  return op->name == "inductor.resize_storage_bytes_.default";
}

bool is_untraced_write(const Op* op) {
  return std::ranges::find(untraced, op->name) != untraced.end();
}

bool changes_geometry(const Graph& graph) {
  for (const Node* node : graph)
    if (node->op()->is_call() && changes_geometry(node->op())) return true;
  return std::ranges::any_of(graph.children, [](const auto& child) { return changes_geometry(*child.second); });
}

std::vector<Node*> follow_in_place(Graph& graph) {
  for (auto& [name, child] : graph.children) follow_in_place(*child);
  std::vector<Node*> last = graph.placeholders();
  if (!changes_geometry(graph)) return last;
  std::unordered_map<Node*, Node*> first;   // node -> the node that made the tensor
  std::unordered_map<Node*, Node*> newest;  // that node -> the last call that changed the tensor's sizes
  for (Node* node : graph) {
    for (Node* input : node->inputs())
      if (Node* now = newest.at(first.at(input)); now != input) node->replace_input(input, now);
    Node* self = returned_argument(*node);
    first[node] = self ? first.at(self) : node;
    if (!self) newest[node] = node;
    if (!self || !changes_geometry(node->op())) continue;
    newest[first[node]] = node;
    if (node->op()->kind == OpKind::Torch) continue;
    for (const auto& [each, made] : first)
      if (made == first[node] && !each->is_placeholder()) each->meta = {};
  }
  for (Node*& p : last) p = newest.at(p);
  return last;
}

}  // namespace partita
