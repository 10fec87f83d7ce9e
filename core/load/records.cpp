#include "core/load/records.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/load/trace_record.h"

namespace partita {

std::string_view record_name(const Artefact& a) {
  std::string_view id = a.id;
  id.remove_prefix(std::min(id.size(), id.rfind('/') + 1));
  const std::size_t dot = id.find('.');
  if (dot != id.npos && id.substr(0, dot).find_first_not_of("0123456789_!") == id.npos && !log_of(a).empty())
    id.remove_prefix(dot + 1);
  const std::size_t last = id.find_last_not_of("0123456789");
  if (last != std::string_view::npos && last + 1 < id.size() && id[last] == '_') id = id.substr(0, last);
  return id;
}

std::string_view log_of(const Artefact& a) {
  // The group of a file of its own is its folder, that of a log's record its compilation.
  if (a.group == std::filesystem::path(a.where.file).parent_path()) return {};
  return a.where.file;
}

std::string log_title(std::string_view path) {
  std::string name = std::filesystem::path(path).stem().string();
  constexpr std::string_view prefix = trace::file_prefix, rank = "rank_";
  if (!name.starts_with(prefix)) return name;
  name.erase(0, prefix.size());
  if (name.starts_with(rank)) std::ranges::replace(name, '_', ' ');
  return name;
}

std::vector<nlohmann::json> records(const Artefact& a) {
  std::vector<nlohmann::json> out;
  const auto text = a.text();
  if (!text) return out;
  const std::string name(record_name(a));
  for (std::size_t at = 0, end; at < text->size(); at = end + 1) {
    end = std::min(text->find('\n', at), text->size());
    const std::size_t json = std::min(text->find("] {", at), end);
    auto record = nlohmann::json::parse(text->begin() + std::min(json + 2, end), text->begin() + end, nullptr, false);
    if (record.is_object() && record.contains(name)) out.push_back(std::move(record[name]));
  }
  return out;
}

std::string text_field(const nlohmann::json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::int64_t int_field(const nlohmann::json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_integer() ? it->get<std::int64_t>() : 0;
}

StepGraphs graphs_beside(std::span<const Artefact* const> artefacts, const Artefact& artefact) {
  const std::string_view log = log_of(artefact);
  const auto beside = [&](const Artefact& a) { return a.group == artefact.group && log_of(a) == log; };
  const auto of_kind = [&](ArtefactKind kind) {
    std::vector<const Artefact*> found;
    for (const Artefact* a : artefacts)
      if (a->kind == kind && beside(*a)) found.push_back(a);
    return found;
  };
  const std::vector<const Artefact*> own = of_kind(artefact.kind);
  const auto place = static_cast<std::size_t>(std::ranges::find(own, artefact.id, &Artefact::id) - own.begin());
  const auto pick = [&](ArtefactKind kind) -> const Artefact* {
    const std::vector<const Artefact*> found = of_kind(kind);
    return place < found.size() ? found[place] : nullptr;
  };
  return {pick(ArtefactKind::Joint), pick(ArtefactKind::Forward), pick(ArtefactKind::Backward)};
}

StepGraphs graphs_beside(const Loaded& loaded, const Artefact& artefact) {
  std::vector<const Artefact*> all;
  for (const Artefact& a : loaded.artefacts) all.push_back(&a);
  return graphs_beside(all, artefact);
}

}  // namespace partita
