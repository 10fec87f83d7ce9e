#include "core/ops/facts/alias.h"

#include "core/ops/facts/control.h"
#include "core/ops/schema/in_place.h"

namespace partita {
namespace {

const Arg* argument(const Node& call, const Schema& schema, std::size_t i) {
  return i < call.args().size() ? &call.args()[i] : call.kwarg(schema.args[i].name);
}

/// The node that stands for the first argument of this alias set.
Node* argument_of_set(const Node& call, const Schema& schema, const std::string& set) {
  for (std::size_t i = 0; i < schema.args.size(); ++i) {
    if (schema.args[i].alias_set != set) continue;
    const Arg* arg = argument(call, schema, i);
    return arg ? arg->node() : nullptr;
  }
  return nullptr;
}

Node* aliased_result(const Node& call, std::size_t index) {
  const Schema* schema = call.op()->kind == OpKind::Torch ? find_schema(call.op()) : nullptr;
  if (!schema || schema->returns.empty()) return nullptr;
  if (takes_memory(call.op())) return call.args().size() > 1 ? call.args()[1].node() : nullptr;
  if (schema->returns.size() == 1) index = 0;
  if (index >= schema->returns.size() || schema->returns[index].alias_set.empty()) return nullptr;
  return argument_of_set(call, *schema, schema->returns[index].alias_set);
}

}  // namespace

Node* aliased_input(const Node& node) {
  if (!node.is(Op::getitem())) return aliased_result(node, 0);
  Node* tuple = node.args().empty() ? nullptr : node.args()[0].node();
  const auto* index = node.args().size() > 1 ? node.args()[1].get<std::int64_t>() : nullptr;
  if (!tuple || !index || *index < 0) return nullptr;
  return aliased_result(*tuple, static_cast<std::size_t>(*index));
}

std::vector<Node*> written_by(const Node& call) {
  std::vector<Node*> out;
  const ControlOp* control = find_control(call.op());
  if (control && control->kind == Control::Kernel)
    for (const auto& [name, tensor] : written_by_kernel(call)) out.push_back(tensor);
  const Schema* schema = call.op()->kind == OpKind::Torch ? find_schema(call.op()) : nullptr;
  for (std::size_t i = 0; schema && i < schema->args.size(); ++i)
    if (const Arg* arg = schema->args[i].is_write ? argument(call, *schema, i) : nullptr)
      for_each_node(*arg, [&](Node* n) { out.push_back(n); });
  return out;
}

Node* memory_owner(Node* node) {
  while (Node* from = aliased_input(*node)) node = from;
  return node;
}

const Node* memory_owner(const Node* node) {
  while (Node* from = aliased_input(*node)) node = from;
  return node;
}

MemoryUses memory_uses(const Graph& graph) {
  MemoryUses out;
  for (const Node* node : graph) {
    if (!node->op()->is_call()) continue;
    const std::vector<Node*> written = written_by(*node);
    for (const Node* target : written) out[memory_owner(target)].writers.push_back(node);
    if (const Node* owner = memory_owner(node); owner != node && written.empty()) out[owner].views.push_back(node);
  }
  return out;
}

}  // namespace partita
