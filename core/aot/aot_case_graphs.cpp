#include "core/aot/aot_case_graphs.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/aot/expand_subclasses.h"
#include "core/aot/metadata_json.h"
#include "core/aot/wrapper.h"
#include "core/compare/same_calls.h"

namespace partita {
namespace {

using CaseJson = nlohmann::json;

/// Compares the fields that both have; those that only one has are its own.
void compare_fields(const std::string& path, const CaseJson& expected, const CaseJson& found,
                    std::vector<std::string>& out) {
  if (expected.is_array() && found.is_array() && expected.size() == found.size()) {
    for (std::size_t i = 0; i < expected.size(); ++i)
      compare_fields(fmt::format("{}[{}]", path, i), expected[i], found[i], out);
  } else if (expected.is_object() && found.is_object()) {
    for (const auto& [key, value] : expected.items())
      if (found.contains(key)) compare_fields(path.empty() ? key : path + "." + key, value, found[key], out);
  } else if (expected != found) {
    out.push_back(fmt::format("{} is {}, {} expected", path, found.dump(), expected.dump()));
  }
}

/// The graph and inputs that AOT gets, and what requires grad.
struct Given {
  std::unique_ptr<Graph> graph;
  AotOptions options;
};

Result<Given> given(const Artefact& artefact, const TensorFile& stored, std::vector<bool> is_leaf, bool train) {
  Given out;
  TRY(out.graph, artefact.graph());
  TRY(const std::optional<SubclassWrapper> subclasses, unwrap_subclasses(out.graph, stored, train));
  if (subclasses) {
    std::vector<bool> inner;
    for (std::size_t i = 0; i < is_leaf.size(); ++i)
      inner.insert(inner.end(), std::max<std::size_t>(1, subclasses->inputs[i].attributes.size()), is_leaf[i]);
    is_leaf = std::move(inner);
  }
  const TensorFile io = subclasses ? with_inner_keys(*subclasses, stored) : stored;
  TRY(GraphInputs inputs, gather_inputs(*out.graph, nullptr, io, std::nullopt));
  const std::vector<Value> values = inputs.values;
  TRY(const Wrappers wrappers, wrap_inputs(*out.graph, inputs, true));
  const std::vector<std::size_t> place = places_of_inputs(wrappers, values.size());
  out.options.train = train;
  out.options.requires_grad.assign(inputs.values.size(), false);
  out.options.is_leaf.assign(inputs.values.size(), true);
  for (std::size_t i = 0; i < place.size(); ++i) {
    const Tensor* t = values[i].get<Tensor>();
    if (t && t->requires_grad) out.options.requires_grad[place[i]] = true;
    if (!is_leaf[i]) out.options.is_leaf[place[i]] = false;
  }
  return out;
}

Status compare_text(const std::filesystem::path& folder, const std::string& name, const Graph* found,
                    std::vector<std::string>& out) {
  const std::filesystem::path file = folder / (name + ".py");
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {};
  if (!found) {
    out.push_back(name + ": there is none");
    return {};
  }
  TRY(const Loaded loaded, load(file.string()));
  TRY(const Artefact* artefact, loaded.pick({}));
  TRY(const std::unique_ptr<Graph> expected, artefact->graph());
  for (const std::string& line : call_differences(*expected, *found)) out.push_back(name + ": " + line);
  return {};
}

}  // namespace

Result<CaseGraphs> compare_case_graphs(const std::string& folder, const CaseJson& recorded, const Artefact& artefact,
                                       const TensorFile& io, const std::vector<bool>& is_leaf) {
  CaseGraphs out;
  const auto requires_grad = [](const auto& entry) { return entry.second.requires_grad; };
  const bool train = std::ranges::any_of(io.tensors, requires_grad);
  TRY(const Given made, given(artefact, io, is_leaf, train));
  AotOptions options = made.options;
  options.passes = false;
  options.effect_tokens = true;
  options.partition.partitioner = Partitioner::Default;
  TRY(const AotGraphs graphs, aot(*made.graph, nullptr, options));
  CaseJson metadata = metadata_json(graphs);
  for (const char* text : {"traced_tangents", "num_symints_saved_for_bw"}) metadata.erase(text);
  compare_fields("", recorded.at("fw_metadata"), metadata, out.metadata);
  // The static inputs are recorded where the partitioner got them.
  if (recorded.contains("partition_kwargs")) {
    const std::string kept = recorded["partition_kwargs"].value("static_lifetime_input_indices", "[]");
    compare_fields("static_input_indices", CaseJson::parse(kept), metadata["static_input_indices"], out.metadata);
  }
  TRY_DO(compare_text(folder, "joint", graphs.joint.get(), out.texts));
  TRY_DO(compare_text(folder, "forward", graphs.partition.forward.get(), out.texts));
  TRY_DO(compare_text(folder, "backward", graphs.partition.backward.get(), out.texts));
  if (recorded.at("needs_autograd")) {
    options.partition.partitioner = Partitioner::MinCut;
    TRY(const AotGraphs cut, aot(*made.graph, nullptr, options));
    TRY_DO(compare_text(folder, "forward_mincut", cut.partition.forward.get(), out.texts));
    TRY_DO(compare_text(folder, "backward_mincut", cut.partition.backward.get(), out.texts));
  } else {
    options.keep_input_mutations = false;
    TRY(const AotGraphs without, aot(*made.graph, nullptr, options));
    TRY_DO(compare_text(folder, "forward_nokeep", without.partition.forward.get(), out.texts));
    if (recorded.contains("fw_metadata_nokeep")) {
      std::vector<std::string> lines;
      CaseJson other = metadata_json(without);
      other.erase("traced_tangents"), other.erase("num_symints_saved_for_bw");
      compare_fields("", recorded["fw_metadata_nokeep"], other, lines);
      for (const std::string& line : lines) out.metadata.push_back("nokeep: " + line);
    }
  }
  return out;
}

}  // namespace partita
