#include "app/tasks/graph_of_rank.h"

#include <charconv>
#include <filesystem>

#include "app/tasks/rank_folder.h"
#include "core/base/assign.h"
#include "core/dtensor/enter.h"
#include "core/load/file.h"

namespace partita {
namespace {

/// The numbers of "2, 1)": up to the bracket.
Sizes numbers(std::string_view text) {
  Sizes out;
  const std::string_view list = text.substr(0, text.substr(0, 200).find(')'));
  for (const char *c = list.data(), *const end = c + list.size(); c < end;) {
    std::int64_t number = 0;
    const auto [behind, error] = std::from_chars(c, end, number);
    if (error == std::errc() && number > 0) out.push_back(number);
    c = error == std::errc() ? behind : c + 1;
  }
  return out;
}

/// The sizes of the device mesh that a log names, as in "DeviceMesh((2, 2), 'cpu', stride=(2, 1))"; empty: it names
/// none, or several. Error dtensor.meshes: its ranks are not in order.
Result<Sizes> mesh_in_log(const std::string& file) {
  Sizes found;
  if (file.empty()) return found;
  TRY(const auto bytes, FileBytes::open(file));
  const std::string_view text = bytes->text(), begin = "DeviceMesh((", strides = "stride=(";
  for (std::size_t at = text.find(begin); at != text.npos; at = text.find(begin, at)) {
    at += begin.size();
    const Sizes sizes = numbers(text.substr(at));
    if (!found.empty() && sizes != found) return Sizes();
    found = sizes;
    const std::string_view behind = text.substr(at, 200);
    const std::size_t told = behind.find(strides);
    if (told == behind.npos || behind.substr(0, told).find("DeviceMesh") != behind.npos) continue;
    std::int64_t in_order = 1;
    const Sizes own = numbers(behind.substr(told + strides.size()));
    for (std::size_t d = sizes.size(); d-- > 0; in_order *= sizes[d])
      if (own.size() != sizes.size() || (sizes[d] > 1 && own[d] != in_order))
        return unsupported("dtensor.meshes",
                           "the ranks of the log's device mesh are not in order, which is not followed",
                           {.file = file});
  }
  return found;
}

}  // namespace

Artefact with_graph(const Artefact& artefact, std::shared_ptr<const Graph> graph) {
  Artefact out = Artefact::of_graph(std::move(graph));
  out.id = artefact.id;
  out.kind = artefact.kind;
  out.title = artefact.title;
  out.group = artefact.group;
  out.where = artefact.where;
  return out;
}

Result<std::optional<Artefact>> artefact_of_rank(const Artefact& artefact, const RankOfJob& job) {
  const auto text = artefact.program ? Result<std::string>(std::string()) : artefact.text();
  if (text && text->find("DTensor(") == std::string::npos) return std::optional<Artefact>();
  TRY(const auto graph, artefact.graph());
  if (!has_dtensors(*graph)) return std::optional<Artefact>();
  RankOfJob known = job;
  if (known.mesh.empty()) TRY_DO(assign(known.mesh, mesh_in_log(artefact.where.file)));
  TRY(auto local, of_one_rank(*graph, known));
  if (!local) return std::optional<Artefact>();
  return std::optional(with_graph(artefact, std::move(local)));
}

Result<std::optional<Artefact>> artefact_alone(const Artefact& artefact, std::int64_t ranks) {
  const std::filesystem::path file(artefact.where.file);
  auto rank = rank_in(file.filename().string());
  if (!rank) rank = rank_in(file.parent_path().filename().string());
  return artefact_of_rank(artefact, {.ranks = ranks, .rank = rank.value_or(0)});
}

Result<Artefact> pick_of_rank(const Loaded& loaded, std::string_view id, std::int64_t ranks) {
  TRY(const Artefact* picked, loaded.pick(id));
  TRY(std::optional<Artefact> of_rank, artefact_alone(*picked, ranks));
  return of_rank ? *std::move(of_rank) : *picked;
}

}  // namespace partita
