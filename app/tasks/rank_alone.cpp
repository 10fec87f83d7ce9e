#include "app/tasks/rank_alone.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "core/compare/per_node.h"
#include "core/interp/aten_calls.h"
#include "core/interp/interpreter.h"
#include "core/ops/facts/effects.h"
#include "core/ops/schema/schema.h"
#include "core/ranks/run_together.h"

namespace partita {
namespace {

/// What a rank has from the others: the value of each node that waits, by its name.
using Received = std::map<std::string, Value>;

bool waits(const Node& node) {
  return is_collective(node.op()) && !starts_collective(node.op());
}

Diagnostic cannot_cut(const Node& node, std::string why) {
  return unsupported("minify.ranks", std::move(why), Where{.graph = node.graph().name, .node = node.name()});
}

/// Runs all ranks together and keeps what each receives.
Result<std::vector<Received>> run_all(const Job& job, const std::vector<minify::Start>& starts,
                                      const Progress* progress) {
  std::vector<Received> out(starts.size());
  const auto work = [&](int rank, Communicator& others, const Progress& stops) -> Status {
    const minify::Start& own = starts[static_cast<std::size_t>(rank)];
    InterpOptions how;
    how.progress = &stops;
    how.communicator = &others;
    how.observer = [&](const Node& node, const Value& value) -> Status {
      if (!waits(node)) return {};
      TRY(std::vector<Value> copy, copy_values({value}));
      out[static_cast<std::size_t>(rank)].emplace(node.name(), std::move(copy.front()));
      return {};
    };
    TRY(std::vector<Value> inputs, copy_values(own.inputs));
    TRY(const std::vector<Value> results, interpret(*own.graph, std::move(inputs), how));
    return {};
  };
  TogetherOptions how;
  how.progress = progress;
  TRY(TogetherRun run, run_together(job, work, how));
  if (run.failure) return *std::move(run.failure);
  return out;
}

/// Puts an input in place of a node that waits.
void make_input(Graph& graph, Node* wait, Node* first_call) {
  const std::string name = wait->name();
  Node* input = graph.placeholder(name, wait->meta, first_call);
  input->origin = wait->origin;
  wait->replace_all_uses_with(input);
  graph.erase(wait);
  graph.rename(input, name);
  input->target = input->name();
}

/// Erases a call that starts a collective, and the items that were taken of its result.
Status erase_start(Graph& graph, Node* start) {
  for (Node* user : std::vector<Node*>(start->users())) {
    if (!user->is(Op::getitem()) || !user->users().empty())
      return cannot_cut(*user, fmt::format("{} reads {} before it is waited for, so its rank cannot be minified by "
                                           "itself",
                                           user->name(), start->name()));
    graph.erase(user);
  }
  graph.erase(start);
  return {};
}

Status check_is_kept(const Node& start) {
  if (const Schema* schema = find_schema(start.op()); schema && schema->is_mutable)
    return cannot_cut(start, fmt::format("{} writes to what it sends; minify the functional graph, which `partita aot` "
                                         "writes",
                                         start.name()));
  return {};
}

/// A collective in a sub graph runs as often as values say, so what the others send it is no single input.
Status check_sub_graphs(const Graph& graph) {
  for (const auto& [target, child] : graph.children) {
    for (const Node* node : *child)
      if (is_collective(node->op()))
        return cannot_cut(*node, fmt::format("{} is a collective in a sub graph, so the rank cannot be minified by "
                                             "itself",
                                             node->name()));
    TRY_DO(check_sub_graphs(*child));
  }
  return {};
}

/// Cuts the collectives off the rank's graph.
Status cut_off(minify::Start& rank, const Received& received) {
  TRY_DO(check_sub_graphs(*rank.graph));
  std::unique_ptr<Graph> graph = rank.graph->clone();
  std::vector<Node*> starts;
  std::vector<Arg> sent;
  Node* first_call = graph->first();
  while (first_call && first_call->is_placeholder()) first_call = first_call->next();
  for (Node* node : *graph) {
    if (starts_collective(node->op())) {
      TRY_DO(check_is_kept(*node));
      for (Node* input : node->inputs())
        if (!input->meta.sym()) sent.emplace_back(input);
      starts.push_back(node);
    } else if (is_collective(node->op())) {
      if (node == first_call) first_call = node->next();
      rank.inputs.push_back(received.at(node->name()));
      make_input(*graph, node, first_call);
    }
  }
  std::vector<Arg> results = graph->outputs();
  std::ranges::move(sent, std::back_inserter(results));
  graph->form = GraphForm::Flat;
  graph->output()->set_args({Arg::tuple(std::move(results))}, {});
  for (Node* start : std::views::reverse(starts)) TRY_DO(erase_start(*graph, start));
  rank.graph = std::move(graph);
  return {};
}

}  // namespace

Result<std::vector<minify::Start>> ranks_alone(const RankFolder& folder, std::uint64_t seed, bool functional,
                                               const Progress* progress) {
  std::vector<minify::Start> starts;
  for (const RankGraph& rank : folder.ranks) {
    TRY(starts.emplace_back(), minify::make_start(rank.artefact, rank.io, seed, functional));
    starts.back().id = id_in_folder(rank);
    if (has_torch_calls(*starts.back().graph)) {  // whose collectives have no record to be known by
      TRY(starts.back().graph, with_aten_calls(*starts.back().graph));
    }
  }
  TRY(const std::vector<Received> received, run_all(folder.job, starts, progress));
  for (std::size_t rank = 0; rank < starts.size(); ++rank) TRY_DO(cut_off(starts[rank], received[rank]));
  return starts;
}

}  // namespace partita
