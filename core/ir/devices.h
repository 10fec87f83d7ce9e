#pragma once
#include <optional>

#include "core/ir/graph.h"

namespace partita {

/// Puts a graph and its sub graphs on another device: metas, and the devices that factories and conversions name. Meta
/// tensors stay.
void move_to(Graph& graph, Device device);
/// The first device of a placeholder that is neither the CPU nor meta.
std::optional<Device> other_device(const Graph& graph);

}  // namespace partita
