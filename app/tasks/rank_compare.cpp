// Compares what all ranks of a folder compute on several sides.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/tasks/columns.h"
#include "app/tasks/rank_alone.h"
#include "app/tasks/rank_runs.h"
#include "codegen/backends.h"
#include "core/base/assign.h"
#include "core/ir/place.h"

namespace partita {
namespace {

constexpr std::string_view stored_name = "stored", results_prefix = "file:";

using ResultsByRank = std::vector<TensorFile>;

Result<ResultsByRank> stored_side(const RankFolder& folder, bool train) {
  ResultsByRank out;
  for (const RankGraph& rank : folder.ranks) out.push_back(stored_results(rank.io, train));
  if (std::ranges::all_of(out, [](const TensorFile& results) { return results.tensors.empty(); }))
    TRY_DO(check_stored(out.front(), "the folder of ranks"));
  return out;
}

/// What an earlier run of all ranks wrote.
Result<ResultsByRank> written_side(const RankFolder& folder, const std::string& path, bool train) {
  ResultsByRank out;
  for (std::size_t rank = 0; rank < folder.ranks.size(); ++rank) {
    TRY(const TensorFile file, read_safetensors(results_file(folder, path, rank)));
    out.push_back(stored_results(file, train));
  }
  return out;
}

Result<ResultsByRank> results_of_side(const RankFolder& folder, const RunRequest& request, const std::string& side) {
  if (side == stored_name) return stored_side(folder, request.train);
  if (side.starts_with(results_prefix)) return written_side(folder, side.substr(results_prefix.size()), request.train);
  TRY(const Backend* backend, find_backend(side));
  TRY(RanksRun run, run_ranks(folder, request, *backend));
  if (run.failure) {
    run.failure->message = fmt::format("on {}: {}", side, run.failure->message);
    return *std::move(run.failure);
  }
  return std::move(run.results);
}

/// The node that output.N of a graph is; null when there is none.
const Node* node_of_result(const Graph& graph, std::string_view key) {
  constexpr std::string_view stem = "output.";
  std::size_t number = 0;
  if (!key.starts_with(stem) ||
      std::from_chars(key.data() + stem.size(), key.data() + key.size(), number).ec != std::errc())
    return nullptr;
  const std::vector<Arg> outputs = graph.outputs();
  return number < outputs.size() ? outputs[number].node() : nullptr;
}

bool same_on_two(const std::string& key, const Tensor& a, const Tensor& b, const Tolerance& tolerance) {
  return compare_values(key, Value(a), Value(b), tolerance, false).ok();
}

/// For results that all ranks have alike, the first rank that has another one than rank 0.
std::optional<int> first_other(const ResultsByRank& results, const std::string& key, const Tolerance& tolerance) {
  const Tensor* first = results.front().find(key);
  for (std::size_t rank = 1; first && rank < results.size(); ++rank) {
    const Tensor* own = results[rank].find(key);
    if (!own || !same_on_two(key, *first, *own, tolerance)) return static_cast<int>(rank);
  }
  return std::nullopt;
}

std::map<std::string, int> torn_results(const ResultsByRank& expected, const ResultsByRank& found,
                                        const Tolerance& tolerance) {
  std::map<std::string, int> torn;
  constexpr Tolerance exactly{0, 0};
  if (expected.size() < 2) return torn;
  for (const auto& [key, tensor] : expected.front().tensors) {
    if (first_other(expected, key, exactly)) continue;
    if (const auto rank = first_other(found, key, tolerance)) torn.emplace(key, *rank);
  }
  return torn;
}

/// The node that a row is about; null when it is no node and no result.
const Node* node_of_row(const Graph& graph, std::string_view row) {
  const Node* node = graph.find(row);
  return node ? node : node_of_result(graph, row);
}

/// The rank and row that differ first: of all ranks, the node that stands first in its graph.
struct First {
  int rank = 0;
  const Difference* row = nullptr;
  const Node* node = nullptr;  ///< null when the row is no output
};
First first_difference(const RankFolder& folder, const RanksComparison& c) {
  First first;
  std::size_t first_place = 0;
  for (std::size_t rank = 0; rank < c.ranks.size(); ++rank) {
    const Graph& graph = *folder.ranks[rank].graph;
    for (const Difference& row : c.ranks[rank].rows) {
      if (row.ok() || row.inherited()) continue;
      const Node* node = node_of_row(graph, row.name);
      std::size_t place = graph.size();
      if (node) place = static_cast<std::size_t>(std::ranges::distance(graph.begin(), std::ranges::find(graph, node)));
      if (first.row && place >= first_place) continue;
      first = {static_cast<int>(rank), &row, node};
      first_place = place;
    }
  }
  return first;
}

}  // namespace

bool RanksComparison::ok() const {
  return torn.empty() && std::ranges::all_of(ranks, [](const Report& r) { return r.ok(); });
}

Result<std::vector<RanksComparison>> compare_ranks(const RankFolder& folder, const RunRequest& request,
                                                   const std::vector<std::string>& sides, const Tolerance& tolerance) {
  std::vector<ResultsByRank> results;
  for (const std::string& side : sides) TRY_DO(assign(results.emplace_back(), results_of_side(folder, request, side)));
  ExactResults exact([&](std::optional<unsigned> shift) {
    RunRequest own = request;
    own.shift = shift;
    return results_of_side(folder, own, "f64");
  });
  std::vector<RanksComparison> out;
  for (std::size_t s = 1; s < sides.size(); ++s) {
    RanksComparison& c = out.emplace_back(RanksComparison{.expected = sides[0], .found = sides[s]});
    for (std::size_t rank = 0; rank < folder.ranks.size(); ++rank) {
      const TensorFile &expected = results[0][rank], &found = results[s][rank];
      Report report = compare_results(expected, found, tolerance, false);
      report.expected_name = sides[0];
      report.found_name = sides[s];
      TRY_DO(sides[s] == stored_name ? exact.judge_stored(report.rows, expected, found, tolerance, rank)
                                     : exact.judge(report.rows, expected, found, tolerance, rank));
      for (Difference& row : report.rows)
        if (const Node* node = node_of_result(*folder.ranks[rank].graph, row.name)) row.origin = origin_text(*node);
      c.ranks.push_back(std::move(report));
    }
    c.torn = torn_results(results[0], results[s], tolerance);
  }
  return out;
}

Result<std::vector<RanksComparison>> compare_nodes_of_ranks(const RankFolder& folder, const RunRequest& request,
                                                            const std::vector<std::string>& names,
                                                            const Tolerance& tolerance) {
  std::vector<CompareSide> sides;
  std::vector<RanksComparison> out;
  for (const std::string& name : names) {
    if (name == stored_name || name.starts_with(results_prefix))
      return input_error("cli.usage", fmt::format("{} has results, not every node's value; name backends", name));
    TRY(sides.emplace_back(), parse_side(name, {}, false));
    if (sides.size() > 1) out.push_back({.expected = names[0], .found = name});
  }
  RunRequest alone = request;
  alone.ranks = {};
  TRY(const std::vector<minify::Start> starts,
      ranks_alone(folder, request.random_weights.value_or(request.seed), true, request.progress));
  for (const minify::Start& rank : starts) {
    TRY(std::vector<Report> reports, compare_graph(*rank.graph, rank.inputs, alone, sides, tolerance));
    for (std::size_t s = 0; s < out.size(); ++s) out[s].ranks.push_back(std::move(reports[s]));
  }
  return out;
}

std::string text(const RankFolder& folder, const RanksComparison& c) {
  const std::size_t n = c.ranks.size();
  std::string out = fmt::format("{} against {}: {} ranks, {} graph{}: ", c.found, c.expected, n, folder.graphs,
                                folder.graphs == 1 ? "" : "s");
  const First first = first_difference(folder, c);
  if (!first.row) out += c.torn.empty() ? "no difference\n" : "each rank agrees\n";
  if (first.row) {
    out += fmt::format("rank {} differs first, in {}", first.rank, first.row->name);
    if (first.node && first.node->name() != first.row->name)
      out += fmt::format(", which {} computes", first.node->name());
    out += first.row->origin.empty() ? "\n" : fmt::format(" ({})\n", first.row->origin);
  }
  for (const auto& [key, rank] : c.torn)
    out += fmt::format("{} is the same on all ranks in {}, and in {} rank {} has another than rank 0\n", key,
                       c.expected, c.found, rank);
  for (const std::string& reason : not_compared(c.ranks)) out += reason + "\n";
  for (std::size_t rank = 0; rank < n; ++rank)
    if (!c.ranks[rank].ok()) out += fmt::format("rank {}\n{}", rank, c.ranks[rank].text());
  return out;
}

nlohmann::ordered_json to_json(const RankFolder& folder, const RanksComparison& c) {
  nlohmann::ordered_json json{{"graph", folder.kind}, {"expected", c.expected}, {"found", c.found}, {"ok", c.ok()}};
  if (const First first = first_difference(folder, c); first.row) {
    json["first"] = {{"rank", first.rank}, {"row", first.row->name}, {"origin", first.row->origin}};
    if (first.node) json["first"]["node"] = first.node->name();
  }
  auto& torn = json["torn"] = nlohmann::ordered_json::array();
  for (const auto& [key, rank] : c.torn) torn.push_back({{"row", key}, {"rank", rank}});
  auto& ranks = json["ranks"] = nlohmann::ordered_json::array();
  for (const Report& report : c.ranks) ranks.push_back(nlohmann::ordered_json::parse(report.json()));
  return json;
}

}  // namespace partita
