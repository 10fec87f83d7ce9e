#include <algorithm>

#include <fmt/format.h>

#include "core/aot/graph_io.h"
#include "core/compare/check_passes.h"
#include "core/compare/compare.h"
#include "core/interp/aten_calls.h"
#include "core/interp/random_values.h"
#include "core/load/file.h"
#include "core/load/pickle.h"
#include "core/ops/facts/seeded_numbers.h"

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

/// The inputs and results that a recording has of a graph's call. Results that no other run gives, because the graph
/// draws random numbers, are left out. Errors load.safetensors.*, load.recording, and those of reading the graph.
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

}  // namespace

Result<TensorFile> own_inputs(const Artefact& artefact) {
  if (artefact.recorded) return recorded_values(artefact);
  TensorFile io;
  if (!artefact.companion) return io;
  const std::vector<Value>& values = artefact.companion->sample_inputs;
  std::map<const Storage*, std::vector<std::size_t>> users;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string key = fmt::format("input.{}", i);
    if (!values[i].get<Tensor>() && !values[i].get<std::int64_t>()) return TensorFile();  // None has no place in a file
    TRY(const auto t, tensor_or_number(values[i]));
    io.tensors[key] = *t;
    users[t->storage.get()].push_back(i);
  }
  for (const auto& [storage, inputs] : users)
    for (const std::size_t i : inputs) {
      if (inputs.size() < 2) continue;
      const std::string shared = fmt::format("storage.{}", inputs.front());
      io.storages[fmt::format("input.{}", i)] = {shared, io.tensors[fmt::format("input.{}", i)].offset};
    }
  return io;
}

Result<TensorFile> read_inputs(const std::string& path) {
  if (path.empty()) return TensorFile();
  if (!path.ends_with(".input")) return read_recorded_values(path);
  TRY(const auto bytes, FileBytes::open(path));
  auto metas = read_dumped_inputs(bytes->text());
  if (!metas) {
    metas.error().where.file = path;
    return std::move(metas).error();
  }
  TensorFile io;
  for (std::size_t i = 0; i < metas->size(); ++i) {
    auto made = get_input((*metas)[i], i);
    if (!made) {
      made.error().where = {.file = path, .node = fmt::format("input.{}", i)};
      return std::move(made).error();
    }
    io.tensors[fmt::format("input.{}", i)] = *made->get<Tensor>();
  }
  return io;
}

}  // namespace partita
