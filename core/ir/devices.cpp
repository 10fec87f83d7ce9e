#include "core/ir/devices.h"

namespace partita {
namespace {

bool moves(Device device) {
  return device.type == DeviceType::Cuda || device.type == DeviceType::Other;
}

void move_meta(Meta& meta, Device device) {
  if (TensorMeta* t = meta.tensor()) {
    if (moves(t->device)) t->device = device;
  } else if (auto* tuple = std::get_if<MetaTuple>(&meta.v)) {
    for (Meta& item : tuple->items) move_meta(item, device);
  }
}

/// `named`: it is the argument `device`, which Python code may give as a string or number.
bool move_argument(Arg& arg, Device device, bool named) {
  bool changed = false;
  const auto each = [&](auto& items) {
    for (Arg& item : items) changed |= move_argument(item, device, false);
  };
  if (const auto* d = arg.get<Device>()) {
    if (!moves(*d)) return false;
    arg = device;
    return true;
  }
  if (const auto* text = arg.get<std::string>(); text && named) {
    const auto parsed = Device::parse(*text);
    if (!parsed || !moves(*parsed)) return false;
    arg = device;
    return true;
  }
  if (named && arg.get<std::int64_t>()) {  // of the accelerator
    arg = device;
    return true;
  }
  if (auto* list = std::get_if<ArgList>(&arg.v)) each(list->items);
  if (auto* slice = std::get_if<ArgSlice>(&arg.v)) each(slice->parts);
  if (auto* dict = std::get_if<ArgDict>(&arg.v))
    for (auto& [key, item] : dict->items) changed |= move_argument(item, device, key == "device");
  return changed;
}

}  // namespace

void move_to(Graph& graph, Device device) {
  for (Node* node : graph) {
    move_meta(node->meta, device);
    Args args = node->args();
    Kwargs kwargs = node->kwargs();
    bool changed = false;
    for (Arg& arg : args) changed |= move_argument(arg, device, false);
    for (auto& [key, arg] : kwargs) changed |= move_argument(arg, device, key == "device");
    if (changed) node->set_args(std::move(args), std::move(kwargs));
  }
  for (auto& [target, child] : graph.children) move_to(*child, device);
}

std::optional<Device> other_device(const Graph& graph) {
  for (const Node* node : graph.placeholders())
    if (const TensorMeta* t = node->meta.tensor(); t && t->device_known && moves(t->device)) return t->device;
  return std::nullopt;
}

}  // namespace partita
