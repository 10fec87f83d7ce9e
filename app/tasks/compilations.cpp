#include "app/tasks/compilations.h"

#include <algorithm>
#include <map>

#include "core/ir/graph.h"
#include "core/partition/joint_parts.h"

namespace partita {

namespace {

bool is_program(ArtefactKind kind) {
  return kind == ArtefactKind::Dynamo || kind == ArtefactKind::PreGrad || kind == ArtefactKind::Exported;
}

/// What a kind of graph is in a compilation; null for one that is not of its flow.
const char* role_of(ArtefactKind kind) {
  static const std::map<ArtefactKind, const char*> roles = {{ArtefactKind::PreGrad, "pre-grad passes"},
                                                            {ArtefactKind::Joint, "joint graph"},
                                                            {ArtefactKind::Inference, "inference graph"},
                                                            {ArtefactKind::Forward, "forward"},
                                                            {ArtefactKind::PostGrad, "post-grad passes"}};
  const auto found = roles.find(kind);
  return found == roles.end() ? nullptr : found->second;
}

/// Is it a graph of the backward? Only inductor's graphs leave that open.
bool is_backward(const Artefact& artefact) {
  if (artefact.kind != ArtefactKind::PostGrad) return artefact.kind == ArtefactKind::Backward;
  const auto graph = artefact.graph();
  if (!graph) return false;
  const std::vector<Node*> placeholders = (*graph)->placeholders();
  return std::ranges::any_of(placeholders, [](const Node* n) { return is_backward_input(*n); });
}

/// The log that an artefact is of, and its compilation there; for others, the folder.
std::string place_of(const Artefact& artefact) {
  return artefact.where.file.find(artefact.group) == 0 ? artefact.group : artefact.where.file + '\n' + artefact.group;
}

/// The k-th forward goes with the k-th backward.
void pair_up(std::vector<CompilationGraphs::Stage>& stages, const std::vector<const Artefact*>& backwards) {
  for (const ArtefactKind kind : {ArtefactKind::Forward, ArtefactKind::PostGrad}) {
    std::vector<const Artefact*> theirs;
    const ArtefactKind wanted = kind == ArtefactKind::Forward ? ArtefactKind::Backward : kind;
    std::ranges::copy_if(backwards, std::back_inserter(theirs), [&](auto* a) { return a->kind == wanted; });
    std::size_t k = 0;
    for (CompilationGraphs::Stage& stage : stages)
      if (stage.graph->kind == kind && k < theirs.size()) stage.backward = theirs[k++];
  }
}

CompilationGraphs of_program(const std::vector<const Artefact*>& group, const Artefact* start) {
  CompilationGraphs out{.start = start, .stages = {}};
  std::vector<const Artefact*> backwards;
  for (const Artefact* a : group) {
    if (is_backward(*a))
      backwards.push_back(a);
    else if (const char* role = role_of(a->kind); role && a != start)
      out.stages.push_back({role, a});
  }
  out.train = std::ranges::any_of(backwards, [](auto* a) { return a->kind == ArtefactKind::Backward; });
  pair_up(out.stages, backwards);
  return out;
}

/// Do two files have the same graph, as fx_graph_readable.py and fx_graph_runnable.py do?
bool same_graph(const Artefact& a, const Artefact& b) {
  const auto x = a.graph(), y = b.graph();
  if (!x || !y) return false;
  return std::ranges::equal(**x, **y,
                            [](const Node* n, const Node* m) { return n->name() == m->name() && n->op() == m->op(); });
}

/// The artefacts of a kind, each graph once.
std::vector<const Artefact*> of_kind(const std::vector<const Artefact*>& group, ArtefactKind kind) {
  std::vector<const Artefact*> out;
  for (const Artefact* a : group)
    if (a->kind == kind && std::ranges::none_of(out, [&](const Artefact* b) { return same_graph(*a, *b); }))
      out.push_back(a);
  return out;
}

/// The first of these kinds that the group has.
std::vector<const Artefact*> first_kind(const std::vector<const Artefact*>& group,
                                        std::initializer_list<ArtefactKind> kinds) {
  for (const ArtefactKind kind : kinds)
    if (auto found = of_kind(group, kind); !found.empty()) return found;
  return {};
}

/// One compilation for each graph that inductor gets, with what inductor's passes made of it.
void without_program(const std::vector<const Artefact*>& group, std::vector<CompilationGraphs>& out) {
  const auto post_grad = of_kind(group, ArtefactKind::PostGrad);
  std::vector<const Artefact*> starts;
  for (const ArtefactKind kind : {ArtefactKind::Forward, ArtefactKind::Inference, ArtefactKind::Backward}) {
    const auto found = of_kind(group, kind);
    for (const Artefact* start : found) {
      out.push_back({.start = start, .stages = {}});
      for (const Artefact* a : post_grad)
        if (found.size() == 1 && is_backward(*a) == (kind == ArtefactKind::Backward))
          out.back().stages.push_back({role_of(a->kind), a});
    }
    starts.insert(starts.end(), found.begin(), found.end());
  }
  if (!starts.empty()) return;
  starts = first_kind(group, {ArtefactKind::Joint, ArtefactKind::Core, ArtefactKind::Graph, ArtefactKind::PostGrad});
  for (const Artefact* a : starts) out.push_back({.start = a, .stages = {}});
}

/// The recorded graphs that have inputs, each with what inductor's passes made of it by the trace.
std::vector<CompilationGraphs> recorded_of(const Loaded& loaded) {
  std::vector<CompilationGraphs> out;
  for (const Artefact& a : loaded.artefacts) {
    if (!a.recorded || a.recorded->of_trace || a.recorded->inputs.empty()) continue;
    out.push_back({.start = &a, .stages = {}});
    for (const Artefact& b : loaded.artefacts)
      if (b.kind == ArtefactKind::PostGrad && b.recorded && b.recorded->inputs == a.recorded->inputs)
        out.back().stages.push_back({role_of(b.kind), &b});
  }
  return out;
}

}  // namespace

bool CompilationGraphs::begins_with_program() const {
  return is_program(start->kind);
}

std::vector<CompilationGraphs> compilations_of(const Loaded& loaded) {
  if (std::vector<CompilationGraphs> recorded = recorded_of(loaded); !recorded.empty()) return recorded;
  std::vector<std::vector<const Artefact*>> groups;
  std::map<std::string, std::size_t> numbers;
  for (const Artefact& a : loaded.artefacts) {
    if (!a.is_graph()) continue;
    const auto [it, added] = numbers.emplace(place_of(a), groups.size());
    if (added) groups.emplace_back();
    groups[it->second].push_back(&a);
  }
  std::vector<CompilationGraphs> out;
  for (const auto& group : groups) {
    const auto starts = first_kind(group, {ArtefactKind::Dynamo, ArtefactKind::PreGrad, ArtefactKind::Exported});
    if (starts.empty()) without_program(group, out);
    for (const Artefact* start : starts)  // of several programs in one folder it is not known whose the others are
      out.push_back(starts.size() == 1 ? of_program(group, start) : CompilationGraphs{.start = start, .stages = {}});
  }
  return out;
}

}  // namespace partita
