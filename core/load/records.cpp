#include "core/load/records.h"

#include <algorithm>
#include <filesystem>

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

}  // namespace partita
