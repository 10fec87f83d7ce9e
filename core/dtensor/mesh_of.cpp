// Finds the size of each mesh dimension from pairs of a whole tensor and the rank's own.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/dtensor/calls.h"
#include "core/dtensor/enter.h"
#include "core/ir/place.h"

namespace partita {
namespace {

/// Which sizes of mesh dimensions one pair tells: those of dimensions that alone shard a dimension of the tensor, into
/// equal parts.
void learn(const DTensorMeta& global, const TensorMeta& local, Sizes& sizes) {
  if (!concrete(local.sizes) || local.dim() != global.whole.dim()) return;
  for (std::size_t i = 0; i < sizes.size() && i < global.placements.size(); ++i) {
    const Placement& p = global.placements[i];
    if (!p.is_shard() || std::ranges::count(global.placements, p) != 1) continue;
    const auto dim = static_cast<std::size_t>(p.dim);
    const std::int64_t whole = global.whole.sizes[dim].as_int(), own = local.sizes[dim].as_int();
    if (sizes[i] == 0 && own > 0 && whole % own == 0) sizes[i] = whole / own;
  }
}

/// Meshes of equal sizes may still be different ranks: which ones, text does not say.
Status check_one_mesh_argument(const Graph& graph) {
  const Node* first = nullptr;
  for (const Node* node : graph) {
    if (!is_from_local(*node) && !is_method_of_dtensor(*node, "redistribute")) continue;
    const Arg* given = node->kwarg("device_mesh");
    if (!given && node->args().size() > 1) given = &node->args()[1];
    const Node* mesh = given ? given->node() : nullptr;
    if (mesh && first && mesh != first)
      return unsupported(
          "dtensor.meshes",
          fmt::format("the graph has DTensors on two meshes, {} and {}; one is followed", first->name(), mesh->name()),
          place_of(*node));
    first = mesh ? mesh : first;
  }
  return {};
}

/// What from_local tells, whose ranks have equal parts, or to_local, of which a rank may have a smaller one.
Status learn_from(const Node& node, bool entering, Sizes& sizes) {
  if (std::ranges::count(sizes, 0) == 0 || node.args().empty() || !node.args()[0].node()) return {};
  if (entering ? !is_from_local(node) : !is_method_of_dtensor(node, "to_local")) return {};
  const Node& argument = *node.args()[0].node();
  TRY(const auto whole, dtensor_meta(entering ? node.meta : argument.meta));
  const TensorMeta* local = entering ? argument.meta.tensor() : node.meta.tensor();
  if (whole && local) learn(*whole, *local, sizes);
  return {};
}

std::int64_t product_of(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies());
}

Diagnostic open_question(const Sizes& found, const Graph& graph) {
  std::vector<std::string> parts;
  for (const std::int64_t n : found) parts.push_back(n > 0 ? std::to_string(n) : "?");
  return input_error("dtensor.mesh",
                     fmt::format("the graph has DTensors, and the size of their mesh is not known ({}); name how many "
                                 "ranks it has (--ranks fake:N), or the mesh in the case.json of the folder of ranks "
                                 "({{\"mesh\": [2, 2]}})",
                                 fmt::join(parts, " by ")),
                     {.graph = graph.name});
}

Status check_one_mesh(std::size_t dims, std::size_t other, const Node& node) {
  if (other == dims) return {};
  return unsupported(
      "dtensor.meshes",
      fmt::format("{} is on a mesh of {} dimensions, and others in the graph on one of {}", node.name(), other, dims),
      place_of(node));
}

}  // namespace

bool has_dtensors(const Graph& graph) {
  for (const Node* node : graph)
    if (is_dtensor(node->meta) || is_from_local(*node)) return true;
  return std::ranges::any_of(graph.children, [](const auto& child) { return has_dtensors(*child.second); });
}

Result<Sizes> mesh_of(const Graph& graph, const Sizes& known, std::int64_t ranks) {
  Sizes sizes = known;
  bool any = false;
  for (const Node* node : graph) {
    TRY(const auto own, dtensor_meta(node->meta));
    if (own) {
      if (!any && sizes.empty()) sizes.assign(own->placements.size(), 0);
      TRY_DO(check_one_mesh(sizes.size(), own->placements.size(), *node));
      any = true;
    }
  }
  if (sizes.size() == 1 && sizes[0] == 0 && ranks > 0) sizes[0] = ranks;
  for (const bool entering : {true, false})
    for (const Node* node : graph) TRY_DO(learn_from(*node, entering, sizes));
  TRY_DO(check_mesh(sizes));
  TRY_DO(check_one_mesh_argument(graph));
  const auto open = std::ranges::count(sizes, 0);
  if (ranks > 0 && open == 1) {
    std::int64_t others = 1;
    for (const std::int64_t n : sizes) others *= std::max<std::int64_t>(n, 1);
    if (ranks % others == 0) *std::ranges::find(sizes, 0) = ranks / others;
  }
  if (sizes.empty() || std::ranges::count(sizes, 0) > 0) return open_question(sizes, graph);
  if (ranks > 0 && product_of(sizes) != ranks)
    return unsupported("dtensor.mesh",
                       fmt::format("the job has {} ranks, and the mesh of the graph's DTensors {}; a mesh of some of "
                                   "the ranks is not followed",
                                   ranks, fmt::join(sizes, " by ")),
                       {.graph = graph.name});
  return sizes;
}

}  // namespace partita
