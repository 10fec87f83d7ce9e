#include "app/tasks/rank_runs.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "codegen/backends.h"
#include "codegen/torch/column.h"
#include "core/aot/one_rank.h"
#include "core/aot/pipeline.h"
#include "core/base/output.h"
#include "core/ir/place.h"
#include "core/ir/user_frame.h"
#include "core/ranks/ladder.h"
#include "core/store/code_store.h"

namespace partita {
namespace {

/// The node's line, and that of the user's program beside it.
std::string place_text(const Node& node) {
  const StackFrame* near = nearest_user_frame(node);
  return origin_text(node) + (near ? fmt::format(", near {}:{}", near->file, near->line) : "");
}

std::string origin_of(const RankFolder& folder, int rank, const std::string& name) {
  const Node* node = folder.ranks[static_cast<std::size_t>(rank)].graph->find(name);
  return node ? place_text(*node) : std::string();
}

/// The nodes of a graph may run on several threads each; no more compute at a time than the machine has cores.
int ranks_at_a_time() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / std::max(1, config().threads));
}

/// "output.0 f32[4, 8], output.1 f32[4]"
std::string results_text(const TensorFile& results) {
  std::vector<std::string> parts;
  for (const auto& [key, t] : results.tensors)
    parts.push_back(fmt::format("{} {}[{}]", key, short_name(t.dtype), fmt::join(t.sizes, ", ")));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// That collectives match, as far as the graphs tell: PyTorch's processes would wait until their time is up. Error
/// ranks.mismatch.
Status check_matches(const RankFolder& folder) {
  std::vector<std::unique_ptr<Graph>> local;
  std::vector<const Graph*> graphs;
  for (const RankGraph& rank : folder.ranks) {
    TRY(local.emplace_back(), forward_of_rank(*rank.graph));
    graphs.push_back(local.back() ? local.back().get() : rank.graph.get());
  }
  TRY(const Ladder ladder, make_ladder(folder.job, graphs));
  const auto wrong = std::ranges::find_if(ladder.rungs, [](const Rung& r) { return !r.wrong.empty(); });
  if (wrong == ladder.rungs.end()) return {};
  const auto started = std::ranges::find_if(wrong->starts, [](int call) { return call >= 0; });
  const auto rank = static_cast<std::size_t>(wrong->members[static_cast<std::size_t>(started - wrong->starts.begin())]);
  const Node& node = *(*ladder.ranks[rank])[static_cast<std::size_t>(*started)].node;
  return input_error("ranks.mismatch",
                     fmt::format("rank {} starts {}, the {} collective of group '{}': {}", rank, wrong->text,
                                 ordinal(wrong->number), wrong->group, wrong->wrong),
                     {.node = node.name(), .origin = place_text(node)});
}

}  // namespace

Status check_trainable(const RankFolder& folder) {
  for (const RankGraph& rank : folder.ranks) {
    const bool part = folder.kind == "forward" || folder.kind == "backward" || folder.kind == "inference";
    if (part || !check_not_cut(*rank.graph, rank.artefact))
      return input_error("aot.cut",
                         "--train differentiates each rank's own graph, and these are parts of a training "
                         "step already; its forward and backward are graphs of their own (--graph forward, "
                         "--graph backward)");
  }
  return {};
}

Result<RanksRun> run_ranks(const RankFolder& folder, const RunRequest& request, const Backend& backend) {
  RanksRun out;
  out.results.resize(folder.ranks.size());
  TogetherOptions options;
  options.computing = ranks_at_a_time();
  if (torch::is_column(backend.name)) {
    TRY_DO(check_matches(folder));
    options.computing = folder.job.ranks;  // they wait for each other where this process does not see it
  }
  options.origin = [&](int rank, const std::string& node) { return origin_of(folder, rank, node); };
  options.progress = request.progress;
  std::mutex printing;
  const auto work = [&](int rank, Communicator& others, const Progress& progress) -> Status {
    const RankGraph& own = folder.ranks[static_cast<std::size_t>(rank)];
    RunRequest how = request;
    how.progress = &progress;
    how.worker.reset();  // what collectives wait for is in this process
    how.communicator = std::shared_ptr<Communicator>(std::shared_ptr<void>(), &others);
    if (request.on_sizes)
      how.on_sizes = [&](const SizeCompilation& c) {
        const std::lock_guard lock(printing);
        request.on_sizes(c);
      };
    // A store is for one thread.
    TRY(out.results[static_cast<std::size_t>(rank)],
        run_artefact(own.artefact, own.io, how, backend,
                     backend.takes_any_graph() ? nullptr : std::make_shared<CodeStore>()));
    return {};
  };
  TRY(TogetherRun run, run_together(folder.job, work, options));
  out.ends = std::move(run.ends);
  out.failure = std::move(run.failure);
  return out;
}

std::string results_file(const RankFolder& folder, const std::string& out, std::size_t rank) {
  return (std::filesystem::path(out) / fmt::format("rank_{}", rank) / (folder.kind + ".safetensors")).string();
}

Status write_results(const RankFolder& folder, const RanksRun& run, const std::string& out) {
  for (std::size_t rank = 0; rank < run.results.size(); ++rank) {
    const std::string file = results_file(folder, out, rank);
    TRY_DO(make_folder(std::filesystem::path(file).parent_path().string()));
    TRY_DO(write_safetensors(file, run.results[rank]));
  }
  return {};
}

std::string text(const RankFolder& folder, const RanksRun& run) {
  std::vector<std::pair<std::string, std::vector<int>>> lines;
  for (std::size_t rank = 0; rank < run.ends.size(); ++rank) {
    const RankEnd& end = run.ends[rank];
    std::string line(name_of(end.state));
    if (end.state == RankEnd::State::Done)
      line += ": " + results_text(run.results[rank]);
    else if (!end.text.empty())
      line = end.state == RankEnd::State::Waits ? end.text : fmt::format("{}: {}", line, end.text);
    const auto found = std::ranges::find(lines, line, [](const auto& row) { return row.first; });
    if (found == lines.end())
      lines.push_back({line, {static_cast<int>(rank)}});
    else
      found->second.push_back(static_cast<int>(rank));
  }
  std::string out = fmt::format("{}: {} ranks, {} graph{}\n", folder.kind, run.ends.size(), folder.graphs,
                                folder.graphs == 1 ? "" : "s");
  for (const auto& [line, ranks] : lines) out += fmt::format("{}: {}\n", ranks_text(ranks), line);
  return out;
}

nlohmann::ordered_json to_json(const RankFolder& folder, const RanksRun& run, std::string_view backend) {
  nlohmann::ordered_json json{
      {"graph", folder.kind}, {"backend", backend}, {"graphs", folder.graphs}, {"ok", !run.failure}};
  auto& ranks = json["ranks"] = nlohmann::ordered_json::array();
  for (std::size_t rank = 0; rank < run.ends.size(); ++rank) {
    const RankEnd& end = run.ends[rank];
    nlohmann::ordered_json row{{"rank", rank}, {"state", name_of(end.state)}};
    if (!end.text.empty()) row["text"] = end.text;
    if (!end.node.empty()) row["node"] = end.node;
    auto& results = row["results"] = nlohmann::ordered_json::object();
    for (const auto& [key, t] : run.results[rank].tensors)
      results[key] = {{"dtype", torch_name(t.dtype)}, {"sizes", t.sizes}, {"strides", t.strides}};
    ranks.push_back(std::move(row));
  }
  if (run.failure)
    json["failure"] = {{"code", run.failure->code},
                       {"message", run.failure->message},
                       {"node", run.failure->where.node},
                       {"origin", run.failure->where.origin},
                       {"notes", run.failure->notes}};
  return json;
}

}  // namespace partita
