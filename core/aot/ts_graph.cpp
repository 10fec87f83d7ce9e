#include "core/aot/ts_graph.h"

#include "core/ir/place.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/resolve.h"

namespace partita {

void strip_overloads(Graph& graph) {
  for (Node* node : graph)
    if (const Schema* schema = node->op()->kind == OpKind::Torch ? find_schema(node->op()) : nullptr)
      node->set_op(Op::torch(schema->base));
  for (auto& [name, child] : graph.children) strip_overloads(*child);
}

void canonicalize_for_script(Graph& graph) {
  for (Node* node : graph) {
    if (node->args().size() == 1 && node->kwargs().size() == 1 && node->kwargs()[0].first == "dtype")
      for (const Schema* schema : find_overloads(node->op()->name))
        if (const OpRecord* record = ops().find(Op::torch(schema->name)); record && record->role == Role::Converts)
          node->set_op(Op::torch("aten.to"));
    Kwargs kwargs = node->kwargs();
    for (auto& [key, value] : kwargs)
      if (const Device* device = value.get<Device>()) value = Device{device->type, -1}.str();
    if (!(kwargs == node->kwargs())) node->set_args(node->args(), std::move(kwargs));
  }
}

Status choose_overloads(Graph& graph) {
  for (Node* node : graph) {
    if (node->op()->kind != OpKind::Torch || find_schema(node->op()) || find_overloads(node->op()->name).empty())
      continue;
    // Scripted code names a device by a string, but the schema has a Device.
    Kwargs kwargs = node->kwargs();
    for (auto& [key, value] : kwargs)
      if (const auto* text = value.get<std::string>(); text && key == "device")
        if (const auto device = Device::parse(*text)) value = *device;
    auto call = resolve_overload(node->op()->name, node->args(), kwargs);
    if (!call) return at_node(std::move(call).error(), *node);
    node->set_op(call->op);
    node->set_args(std::move(call->args), std::move(call->kwargs));
  }
  for (auto& [name, child] : graph.children) TRY_DO(choose_overloads(*child));
  return {};
}

}  // namespace partita
