#pragma once
// Graphs of DTensors as dynamo prints them, and what becomes of them on one rank.
#include <memory>
#include <string>

#include "core/dtensor/enter.h"
#include "core/dtensor/local.h"
#include "core/grad/joint.h"
#include "tests/support/fx.h"

namespace partita::testing {

/// Shorthand: {f32[4, 2] S(0)} is the annotation of a DTensor on the CPU, from_local( that call without a check, and
/// R, S0, S1, P placements within [...] of it.
inline std::string dtensors(std::string text) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  for (std::size_t at = 0; (at = text.find('{', at)) != std::string::npos;) {
    const std::size_t end = text.find('}', at), gap = text.find("] ", at) + 1;
    text.replace(
        at, end - at + 1,
        "\"DTensor(" + text.substr(at + 1, gap - at - 1) + "cpu, " + text.substr(gap + 1, end - gap - 1) + ")\"");
  }
  const std::string types = "torch.distributed.tensor.placement_types.";
  replace("%R", types + "Replicate()");
  replace("%S0", types + "Shard(dim=0)");
  replace("%S1", types + "Shard(dim=-1)");
  replace("%P", types + "Partial('sum')");
  replace("from_local(", "torch.distributed.tensor._api.from_local(");
  return text;
}

inline std::unique_ptr<Graph> dtensor_graph(const std::string& parameters, const std::string& lines) {
  return fx(dtensors(parameters), dtensors(lines));
}

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().line());
  return *std::move(result);
}

/// The forward, or with `train` the joint graph, of that rank; an error as its code and message.
inline Result<std::unique_ptr<Graph>> on_rank(const Graph& graph, const Mesh& mesh, bool train = false) {
  TRY(const auto entered, with_local_inputs(graph, mesh));
  TRY_DO(refuse_writes(*entered));
  FunctionalizeOptions how;
  for (const Node* p : entered->placeholders()) how.requires_grad.push_back(train && p->meta.tensor());
  TRY(FunctionalGraph functional, functionalize(*entered, how));
  if (!train) return on_local_tensors(*functional.graph);
  TRY(const Joint joint, make_joint(std::move(functional)));
  TRY(const auto local, on_local_tensors(*joint.graph));
  return renamed_in_order(*local);
}

inline std::string local_body(const Graph& graph, const Mesh& mesh, bool train = false) {
  auto made = on_rank(graph, mesh, train);
  return made ? body(**made) : made.error().code + ": " + made.error().message + "\n";
}

}  // namespace partita::testing
