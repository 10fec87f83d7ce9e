#include "app/tasks/rank_ladder.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/tasks/graph_of_rank.h"
#include "core/base/number_text.h"
#include "core/ir/user_frame.h"
#include "core/ranks/exchange.h"

namespace partita {
namespace {

std::string line_of(const Node& node) {
  if (!node.origin || node.origin->of_user().file.empty()) return {};
  const auto text = [](const StackFrame& frame) {
    return fmt::format("{}:{}", frame.file.substr(frame.file.rfind('/') + 1), frame.line);
  };
  const StackFrame* near = nearest_user_frame(node);
  return text(node.origin->of_user()) + (near ? ", near " + text(*near) : "");
}

/// "mm, add", "mm, add and 7 more": what runs while a collective is under way.
std::string meanwhile(const GraphCollective& c) {
  constexpr std::size_t most = 3;
  if (!c.wait) return "nobody waits for it";
  if (c.between.empty()) return "waited for at once";
  std::vector<std::string> names;
  for (const Node* node : c.between)
    if (names.size() < most) names.emplace_back(node->name());
  const std::size_t more = c.between.size() - names.size();
  return fmt::format("meanwhile {}{}", fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

QueryRow row_of(const GraphCollective& c, std::vector<std::string> cells) {
  QueryRow row{.node = std::string(c.node->name()), .text = fmt::format("{}", fmt::join(cells, "  "))};
  row.cells = std::move(cells);
  if (c.node->origin) row.at = c.node->origin->of_user();
  return row;
}

std::vector<RankLadder::Cell> cells_of(const Rung& rung, const std::vector<std::size_t>& lane_of, std::size_t lanes) {
  std::vector<RankLadder::Cell> cells(lanes);
  for (std::size_t m = 0; m < rung.members.size(); ++m) {
    RankLadder::Cell& cell = cells[lane_of[static_cast<std::size_t>(rung.members[m])]];
    if (rung.starts[m] >= 0)
      cell = {RankLadder::Part::Starts, rung.starts[m]};
    else if (cell.part == RankLadder::Part::None)
      cell.part = RankLadder::Part::Missing;
  }
  return cells;
}

QueryAnswer answer_of_ranks(const RankLadder& ladder) {
  QueryAnswer out{ladder.summary(), {}};
  out.columns = {"Collective", "Group", "Ranks", "Node", "Line", "Under way", "Wrong"};
  for (const RankLadder::Row& row : ladder.rows) {
    const Rung& rung = ladder.ladder.rungs[row.rung];
    const std::size_t lane = ladder.lane_of(row);
    const GraphCollective* c = lane < row.lanes.size() ? ladder.call(row, lane) : nullptr;
    if (!c) continue;
    std::vector<int> members = rung.members;
    std::ranges::sort(members);
    std::string group = row.count > 1 ? fmt::format("{} groups as '{}'", row.count, rung.group) : rung.group;
    out.rows.push_back(row_of(*c, {rung.text, std::move(group), ranks_text(members), std::string(c->node->name()),
                                   line_of(*c->node), meanwhile(*c), rung.wrong}));
    const RankGraph& of = ladder.folder.ranks[static_cast<std::size_t>(ladder.lanes[lane].front())];
    out.rows.back().artefact = id_in_folder(of);
  }
  return out;
}

/// Which collectives DTensors need is seen once they are local.
Result<std::unique_ptr<Graph>> graph_with_collectives(const Artefact& artefact) {
  TRY(const std::optional<Artefact> of_rank, artefact_alone(artefact, 0));
  TRY(auto graph, of_rank ? of_rank->graph() : artefact.graph());
  TRY(auto local, forward_of_rank(*graph));
  return local ? std::move(local) : std::move(graph);
}

Result<QueryAnswer> answer_of_graph(const Artefact& artefact) {
  TRY(const auto graph, graph_with_collectives(artefact));
  TRY(const GraphCollectives found, collectives_of(*graph));
  QueryAnswer out{fmt::format("{} in order", count_text(found->size(), "collective")), {}};
  out.columns = {"Collective", "Group", "Node", "Line", "Under way"};
  for (const GraphCollective& c : *found)
    out.rows.push_back(
        row_of(c, {text(c.call), c.call.group, std::string(c.node->name()), line_of(*c.node), meanwhile(c)}));
  return out;
}

}  // namespace

std::string place_of(const GraphCollective& c) {
  const std::string line = line_of(*c.node);
  return fmt::format("{}{}, {}", c.node->name(), line.empty() ? "" : " (" + line + ")", meanwhile(c));
}

Result<RankLadder> read_ladder(const std::string& path, const std::string& graph, const Progress* progress) {
  RankLadder out;
  TRY(out.folder, read_rank_folder(path, graph, {}, progress));
  TRY_DO(step(progress, -1, "matching collectives"));
  std::vector<const Graph*> graphs;
  std::map<const Graph*, std::size_t> lane_of_graph;
  std::vector<std::size_t> lane_of;
  for (std::size_t rank = 0; rank < out.folder.ranks.size(); ++rank) {
    TRY(auto local, forward_of_rank(*out.folder.ranks[rank].graph));
    if (local) out.folder.ranks[rank].graph = std::move(local);
    const Graph* const own = out.folder.ranks[rank].graph.get();
    graphs.push_back(own);
    const auto [lane, fresh] = lane_of_graph.emplace(own, out.lanes.size());
    if (fresh) out.lanes.emplace_back();
    out.lanes[lane->second].push_back(static_cast<int>(rank));
    lane_of.push_back(lane->second);
  }
  TRY(out.ladder, make_ladder(out.folder.job, graphs));
  for (std::size_t i = 0; i < out.ladder.rungs.size(); ++i) {
    const Rung& rung = out.ladder.rungs[i];
    RankLadder::Row row{.rung = i, .lanes = cells_of(rung, lane_of, out.lanes.size())};
    const auto alike = [&](const RankLadder::Row& other) {
      const Rung& r = out.ladder.rungs[other.rung];
      return r.number == rung.number && r.text == rung.text && r.wrong == rung.wrong &&
             std::ranges::equal(row.lanes, other.lanes,
                                [](const auto& a, const auto& b) { return a.part == b.part && a.call == b.call; });
    };
    // Those of other groups in the same lanes lie close by.
    constexpr std::size_t near = 64;
    const auto begin = out.rows.size() > near ? out.rows.end() - near : out.rows.begin();
    if (const auto same = std::find_if(begin, out.rows.end(), alike); same != out.rows.end())
      ++same->count;
    else
      out.rows.push_back(std::move(row));
  }
  return out;
}

std::size_t RankLadder::wrong() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(rows, [&](const Row& row) { return !ladder.rungs[row.rung].wrong.empty(); }));
}

const GraphCollective* RankLadder::call(const Row& row, std::size_t lane) const {
  const Cell& cell = row.lanes[lane];
  if (cell.call < 0) return nullptr;
  return &(*ladder.ranks[static_cast<std::size_t>(lanes[lane].front())])[static_cast<std::size_t>(cell.call)];
}

std::size_t RankLadder::lane_of(const Row& row) const {
  const auto starts = [](const Cell& cell) { return cell.part == Part::Starts; };
  return static_cast<std::size_t>(std::ranges::find_if(row.lanes, starts) - row.lanes.begin());
}

std::string RankLadder::lane_name(std::size_t lane) const {
  return ranks_text(lanes[lane]);
}

std::string RankLadder::summary() const {
  const std::size_t bad = wrong();
  return fmt::format("{} with {}; {}, {}", count_text(folder.ranks.size(), "rank"),
                     lanes.size() == 1 ? "one graph" : fmt::format("{} graphs", lanes.size()),
                     count_text(ladder.rungs.size(), "collective"),
                     bad == 0 ? "all match" : fmt::format("{} do{} not match", bad, bad == 1 ? "es" : ""));
}

Result<QueryAnswer> answer_collectives(const QuerySubject& s) {
  if (s.artefact) return answer_of_graph(*s.artefact);
  std::error_code error;
  if (std::filesystem::is_directory(s.loaded.path, error)) {
    const auto ladder = read_ladder(s.loaded.path, s.request.graph, s.request.progress);
    if (ladder) return answer_of_ranks(*ladder);
    // Another folder, or one of its graphs by its id.
    const std::string id = s.request.graph;
    if (ladder.error().code != "ranks.folder" || (!id.empty() && !s.loaded.find(id))) return ladder.error();
  }
  TRY(const Artefact* artefact, s.loaded.pick(s.request.graph));
  return answer_of_graph(*artefact);
}

}  // namespace partita
