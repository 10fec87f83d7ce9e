#include "app/tasks/rank_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/tasks/graph_of_rank.h"
#include "core/aot/graph_io.h"
#include "core/base/assign.h"
#include "core/dtensor/enter.h"
#include "core/load/file.h"

namespace partita {
namespace {

namespace fs = std::filesystem;

using PathsByRank = std::map<int, std::string>;

struct RankPaths {
  PathsByRank folders, logs;
};

Result<RankPaths> find_ranks(const std::string& path) {
  RankPaths found;
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) entries.push_back(*it);
  if (error)
    return input_error("ranks.folder", "--ranks takes a folder with the graphs of ranks: " + error.message(),
                       {.file = path});
  std::ranges::sort(entries);
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    const auto rank = rank_in(name);
    if (!rank) continue;
    const bool is_folder = entry.is_directory(error);
    if (!is_folder && !entry.is_regular_file(error)) continue;
    const auto [kept, is_new] = (is_folder ? found.folders : found.logs).emplace(*rank, entry.path().string());
    if (!is_new)
      return input_error("ranks.twice",
                         fmt::format("rank {} is there twice, as {} and {}; leave one of them", *rank,
                                     fs::path(kept->second).filename().string(), name),
                         {.file = path});
  }
  return found;
}

Status check_complete(const PathsByRank& ranks, const std::string& path) {
  int next = 0;
  std::vector<int> missing;
  for (const auto& [rank, file] : ranks) {
    if (rank >= Job::most_ranks)
      return input_error("ranks.count", fmt::format("there is a rank {}; a job has at most {}", rank, Job::most_ranks),
                         {.file = path});
    for (; next < rank; ++next) missing.push_back(next);
    next = rank + 1;
  }
  if (missing.empty()) return {};
  return input_error("ranks.missing",
                     fmt::format("{} missing: there is rank {}; all ranks of a job are needed",
                                 ranks_text(missing) + (missing.size() == 1 ? " is" : " are"), ranks.rbegin()->first),
                     {.file = path});
}

/// "mesh" of case.json.
Result<Sizes> read_mesh(const nlohmann::json& json, const std::string& path) {
  Sizes sizes;
  const auto mesh = json.find("mesh");
  if (mesh == json.end()) return sizes;
  for (const auto& size : mesh->is_array() ? *mesh : nlohmann::json::array({0})) {
    if (!size.is_number_integer() || size.get<std::int64_t>() < 1 || size.get<std::int64_t>() > Job::most_ranks)
      return input_error("ranks.case", "\"mesh\" is not a list of the sizes of its dimensions", {.file = path});
    sizes.push_back(size.get<std::int64_t>());
  }
  return sizes;
}

/// What case.json says; without one, as many ranks as were found.
Result<Job> read_job(const std::string& folder, int found, Sizes& mesh) {
  Job job{.ranks = found};
  const std::string path = (fs::path(folder) / "case.json").string();
  const auto wrong = [&](const std::string& what) { return input_error("ranks.case", what, {.file = path}); };
  std::error_code error;
  if (!fs::exists(path, error)) return job;
  TRY(const auto bytes, FileBytes::open(path));
  const auto json = nlohmann::json::parse(bytes->text(), nullptr, false);
  if (!json.is_object()) return wrong("not JSON with \"ranks\" and \"groups\"");
  if (const auto ranks = json.find("ranks"); ranks != json.end()) {
    if (!ranks->is_number_integer()) return wrong("\"ranks\" is not a whole number");
    const auto said = ranks->get<std::int64_t>();
    if (said < 1 || said > Job::most_ranks)
      return input_error("ranks.count", fmt::format("{} ranks; a job has from 1 to {}", said, Job::most_ranks),
                         {.file = path});
    if (said != found)
      return input_error("ranks.missing", fmt::format("it says {} ranks, and the folder has {}", said, found),
                         {.file = path});
  }
  TRY(mesh, read_mesh(json, path));
  const auto groups = json.find("groups");
  if (groups == json.end()) return job;
  if (!groups->is_object()) return wrong("\"groups\" is not an object of lists of ranks");
  for (const auto& [name, members] : groups->items()) {
    if (!members.is_array() || members.size() > static_cast<std::size_t>(Job::most_ranks))
      return wrong(fmt::format("group '{}' is not a list of at most {} ranks", name, Job::most_ranks));
    for (const auto& member : members) {
      if (!member.is_number_integer()) return wrong(fmt::format("group '{}' is not a list of ranks", name));
      const auto rank = member.get<std::int64_t>();
      job.groups[name].push_back(rank < 0 || rank > Job::most_ranks ? -1 : static_cast<int>(rank));
    }
    job.groups.try_emplace(name);
  }
  if (Status checked = check(job); !checked) {
    checked.error().where.file = path;
    return std::move(checked).error();
  }
  return job;
}

/// The texts of a rank's folder, by name: "forward".
std::vector<std::string> kinds_in(const std::string& folder) {
  std::vector<std::string> kinds;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".py") kinds.push_back(it->path().stem().string());
  std::ranges::sort(kinds);
  return kinds;
}

Result<std::string> kind_of(const std::string& folder, const std::string& graph) {
  const std::vector<std::string> kinds = kinds_in(folder);
  if (graph.empty() && kinds.size() == 1) return kinds.front();
  if (!graph.empty() && std::ranges::find(kinds, graph) != kinds.end()) return graph;
  const std::string there = kinds.empty() ? "it holds no texts of graphs (KIND.py)"
                                          : fmt::format("it holds the graphs {}", fmt::join(kinds, ", "));
  return input_error(
      "ranks.folder",
      graph.empty() ? there + "; name one with --graph" : fmt::format("no graph {}.py; {}", graph, there),
      {.file = folder});
}

/// Graphs of DTensors become those of each rank's own tensors.
Status make_local(RankFolder& folder) {
  for (std::size_t rank = 0; rank < folder.ranks.size(); ++rank) {
    RankGraph& own = folder.ranks[rank];
    const RankOfJob job{folder.mesh, folder.job.ranks, static_cast<int>(rank)};
    if (!has_dtensors(*own.graph)) continue;
    TRY(auto local, artefact_of_rank(own.artefact, job));
    if (!local) continue;
    own.artefact = *std::move(local);
    TRY(own.graph, own.artefact.graph());
  }
  return {};
}

/// Reads each text once.
class RankReader {
 public:
  explicit RankReader(const Progress* progress) : progress_(progress) {}

  Result<RankGraph> read(const std::string& file, const std::string& graph) {
    TRY(const Loaded loaded, load(file, progress_));
    TRY(const Artefact* picked, loaded.pick(graph));
    TRY(const std::string text, picked->text());
    std::shared_ptr<const Graph>& known = graphs_[text];
    if (!known) TRY_DO(assign(known, picked->graph()));
    RankGraph out{with_graph(*picked, known), known, {}};
    out.artefact.recorded = picked->recorded;
    return out;
  }

  std::size_t graphs() const { return graphs_.size(); }

 private:
  const Progress* progress_;
  std::unordered_map<std::string, std::shared_ptr<const Graph>> graphs_;  ///< by text
};

}  // namespace

std::optional<int> rank_in(std::string_view name) {
  constexpr std::string_view word = "rank";
  std::size_t at = name.rfind(word);
  if (at == std::string_view::npos) return std::nullopt;
  at += word.size();
  if (at < name.size() && name[at] == '_') ++at;
  int rank = 0;
  const auto [end, error] = std::from_chars(name.data() + at, name.data() + name.size(), rank);
  if (error != std::errc() || rank < 0) return std::nullopt;
  return rank;
}

std::string id_in_folder(const RankGraph& graph) {
  const fs::path file(graph.artefact.where.file);
  const std::string folder = file.parent_path().filename().string();
  return (rank_in(folder) ? folder : file.stem().string()) + "/" + graph.artefact.id;
}

Result<RankFolder> read_rank_folder(const std::string& path, const std::string& graph, const std::string& inputs,
                                    const Progress* progress) {
  TRY(const RankPaths found, find_ranks(path));
  const PathsByRank& paths = found.folders.empty() ? found.logs : found.folders;
  if (paths.empty())
    return input_error("ranks.folder",
                       "no ranks in it; a folder of ranks has the folders rank_0, rank_1, ... or logs with _rank_0_, "
                       "_rank_1_, ... in their names",
                       {.file = path});
  TRY_DO(check_complete(paths, path));
  RankFolder out;
  TRY(out.job, read_job(path, static_cast<int>(paths.size()), out.mesh));
  std::optional<TensorFile> given;
  if (!inputs.empty()) TRY_DO(assign(given, read_inputs(inputs)));
  // A rank's folder has the texts of its graphs, or what PyTorch and `partita record` leave.
  const bool texts = !found.folders.empty() &&
                     std::ranges::any_of(paths, [](const auto& rank) { return !kinds_in(rank.second).empty(); });
  RankReader reader(progress);
  for (const auto& [rank, file] : paths) {
    TRY_DO(step(progress, static_cast<double>(rank) / static_cast<double>(paths.size()),
                fmt::format("reading rank {}", rank)));
    if (!texts) {
      TRY(RankGraph read, reader.read(file, graph));
      out.kind = kind_name(read.artefact.kind);
      if (!given && read.artefact.recorded) TRY_DO(assign(read.io, own_inputs(read.artefact)));
      out.ranks.push_back(std::move(read));
    } else {
      TRY(out.kind, kind_of(file, graph));
      TRY(RankGraph read, reader.read((fs::path(file) / (out.kind + ".py")).string(), ""));
      const std::string values = (fs::path(file) / (out.kind + ".safetensors")).string();
      if (std::error_code error; !given && fs::exists(values, error)) TRY_DO(assign(read.io, read_safetensors(values)));
      out.ranks.push_back(std::move(read));
    }
    if (given) out.ranks.back().io = *given;
  }
  out.graphs = reader.graphs();
  TRY_DO(make_local(out));
  return out;
}

}  // namespace partita
