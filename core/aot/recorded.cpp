#include "core/aot/recorded.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/compare/check_passes.h"
#include "core/interp/aten_calls.h"
#include "core/ops/facts/inductor_random.h"

namespace partita {
namespace {

Result<TensorFile> read_files(const Recorded& recorded) {
  TensorFile io;
  for (const std::string& path : {recorded.inputs, recorded.outputs}) {
    if (path.empty()) continue;
    TRY(TensorFile file, read_recorded_values(path));
    io.tensors.merge(file.tensors);
    io.left_out.merge(file.left_out);
    io.unread.merge(file.unread);
    io.metadata.merge(file.metadata);
  }
  return io;
}

/// A node whose random numbers no other run draws; null where there is none. Inductor's own operators draw again from
/// the generator's state on a CPU; the order of ATen's numbers depends on the processor.
const Node* find_unrepeatable(const Graph& graph, bool has_state) {
  for (const Node* node : graph) {
    if (!node->op()->is_call()) continue;
    const TensorMeta* meta = node->meta.tensor();
    if (draws_seeds(node->op()) || draws_from_seed(node->op())) {
      if (!has_state || !meta || meta->device.type != DeviceType::Cpu) return node;
    } else if (draws_random(*node)) {
      return node;
    }
  }
  for (const auto& [name, child] : graph.children)
    if (const Node* node = find_unrepeatable(*child, has_state)) return node;
  return nullptr;
}

}  // namespace

Result<TensorFile> recorded_values(const Artefact& artefact) {
  TRY(TensorFile io, read_files(*artefact.recorded));
  const auto is_result = [](const auto& row) {
    return row.first.starts_with("output.") || row.first.starts_with("input_after.");
  };
  if (std::ranges::none_of(io.tensors, is_result)) return io;
  TRY(const std::unique_ptr<Graph> graph, artefact.graph());
  const auto aten = with_aten_calls(*graph);  // functions of torch draw by what they call; a run tells what fails here
  const Node* node = find_unrepeatable(aten ? **aten : *graph, io.find("generator.cpu") != nullptr);
  if (!node) return io;
  const std::string reason =
      fmt::format("the graph draws random numbers ({}), which no other run repeats", node->name());
  for (const auto& row : io.tensors)
    if (is_result(row)) io.left_out.emplace(row.first, reason);
  std::erase_if(io.tensors, is_result);
  return io;
}

}  // namespace partita
