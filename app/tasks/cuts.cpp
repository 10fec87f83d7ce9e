#include "app/tasks/cuts.h"

#include <set>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "codegen/backends.h"
#include "core/base/assign.h"
#include "core/base/number_text.h"

namespace partita {
namespace {

using Json = nlohmann::ordered_json;

Json cut_json(const Partition& cut) {
  return {{"forward_inputs", cut.forward->placeholders().size()},
          {"forward_outputs", cut.forward->outputs().size()},
          {"backward_inputs", cut.backward->placeholders().size()},
          {"backward_outputs", cut.backward->outputs().size()},
          {"num_fwd_outputs", cut.forward_outputs},
          {"num_symints_saved_for_bw", cut.saved_symbols},
          {"saved", saved_json(cut)},
          {"saved_activation_bytes", cut.activation_bytes},
          {"saved_input_bytes", cut.input_bytes},
          {"recomputed", cut.recomputed}};
}

std::set<std::string_view> saved_names(const Partition& cut) {
  std::set<std::string_view> names;
  for (const SavedValue& v : cut.saved) names.insert(v.name);
  return names;
}

bool cut_by_default(const Graph& joint, const Cuts& cuts) {
  if (saved_names(*cuts.theirs) == saved_names(*cuts.ours)) return false;
  const auto by_default = partition(joint, {.partitioner = Partitioner::Default});
  return by_default && saved_names(*cuts.theirs) == saved_names(*by_default);
}

}  // namespace

Result<Cuts> read_cuts(const StepGraphs& graphs) {
  Cuts cuts;
  if (graphs.forward && graphs.backward) {
    TRY(const auto forward, graphs.forward->graph());
    TRY(const auto backward, graphs.backward->graph());
    TRY(cuts.theirs, read_cut(*forward, *backward));
  }
  if (graphs.joint) {
    TRY(const auto joint, graphs.joint->graph());
    AotOptions how = as_run(*joint, *graphs.joint, {});
    how.tangents_for_aliases = false;  // nothing runs: a gradient may be several inner tensors of a subclass
    auto made = is_joint(*joint) ? aot(*joint, nullptr, how)
                                 : Result<AotGraphs>(input_error("query.cut", "a graph of inference has no backward",
                                                                 {.graph = graphs.joint->id}));
    if (made)
      cuts.ours = std::move(made->partition);
    else if (!cuts.theirs)
      return std::move(made).error();
    else
      cuts.no_ours = std::move(made).error();
    if (cuts.theirs && cuts.ours) cuts.by_default_partitioner = cut_by_default(*joint, cuts);
  }
  if (!cuts.theirs && !cuts.ours)
    return input_error("query.cut",
                       "there is no cut: PyTorch's is read from a forward and a backward graph of one compilation or "
                       "folder (`query FORWARD.py cut BACKWARD.py`), ours is made of a joint graph");
  const Artefact* logged = graphs.forward ? graphs.forward : graphs.joint;
  if (logged->functorch)
    if (const auto it = logged->functorch->find("activation_memory_budget"); it != logged->functorch->end())
      cuts.budget = it->second;
  if (cuts.theirs && cuts.ours) {
    cuts.values = compare_cuts(*cuts.theirs, *cuts.ours);
  } else {
    for (const SavedValue& v : (cuts.theirs ? cuts.theirs : cuts.ours)->saved) {
      CutDifference& row = cuts.values.emplace_back(CutDifference{v.name, {}, {}, v.why});
      (cuts.theirs ? row.theirs : row.ours) = v;
    }
  }
  return cuts;
}

Result<CutMemory> cut_memory(const Loaded& loaded, const Artefact& artefact, const RunRequest& request) {
  TRY(const auto graph, artefact.graph());
  const StepGraphs graphs = graphs_beside(loaded, artefact);
  const bool has_theirs = graphs.forward && graphs.backward;
  RunRequest how = request;
  how.train |= is_joint(*graph);
  const bool is_cut = has_theirs && !request.train && !check_not_cut(*graph, artefact);
  CutMemory out;
  if (has_theirs && (is_cut || how.train)) {
    TRY(const auto forward, graphs.forward->graph());
    TRY(const auto backward, graphs.backward->graph());
    TRY(const Partition cut, read_cut(*forward, *backward));
    TRY(out.theirs, step_memory(cut, default_compiler(), request.progress));
  }
  if (!is_cut) TRY_DO(assign(out.ours, step_memory(artefact, how, default_compiler())));
  return out;
}

std::string summary(const Partition& cut) {
  std::string text = fmt::format("{}: {} bytes of activations, {} bytes of inputs",
                                 count_text(cut.saved.size(), "value"), cut.activation_bytes, cut.input_bytes);
  if (cut.saved_symbols > 0) text += fmt::format(", {}", count_text(cut.saved_symbols, "number"));
  if (!cut.recomputed.empty()) text += fmt::format("; {} computed again", count_text(cut.recomputed.size(), "call"));
  return text;
}

Json saved_json(const Partition& cut) {
  Json saved = Json::array();
  for (const SavedValue& s : cut.saved)
    saved.push_back(
        {{"name", s.name}, {"bytes", s.bytes}, {"is_input", s.is_input}, {"is_symbol", s.is_symbol}, {"why", s.why}});
  return saved;
}

Json to_json(const Cuts& cuts) {
  Json out;
  if (cuts.theirs) out["theirs"] = cut_json(*cuts.theirs);
  if (cuts.ours) {
    out["ours"] = cut_json(*cuts.ours);
    out["ours"]["memory_budget"] = cuts.ours->memory_budget;
  }
  if (cuts.no_ours) out["no_ours"] = cuts.no_ours->message;
  if (cuts.by_default_partitioner) out["theirs"]["partitioner"] = "default";
  if (cuts.budget) out["activation_memory_budget"] = *cuts.budget;
  return out;
}

}  // namespace partita
