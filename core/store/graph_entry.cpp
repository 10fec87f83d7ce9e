// Entries of the caches of whole graphs as bytes, their look-up, differences between keys line by line, and the nearest
// earlier entry, which explains a miss. Also the log of hits, misses and bypasses.
#include "core/store/graph_entry.h"

#include <algorithm>
#include <cstdio>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/archive.h"
#include "core/base/config.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/load/trace_writer.h"
#include "core/store/code_store.h"
#include "core/store/store.h"

namespace partita {

void fields(auto& a, GraphEntry& e) {
  a(e.parts, e.payload);
}

namespace {

constexpr std::string_view heading = "PTG1";

/// The lines of the first text that the second lacks, counted.
std::vector<std::string_view> only_in(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  std::unordered_map<std::string_view, int> left;
  for (std::string_view line : b) ++left[line];
  std::vector<std::string_view> out;
  for (std::string_view line : a)
    if (--left[line] < 0) out.push_back(line);
  return out;
}

}  // namespace

std::string key_of(const KeyParts& parts) {
  std::string text;
  for (const auto& [name, value] : parts) {
    add_part(text, name);
    add_part(text, value);
  }
  return content_hash(text);
}

std::string entry_bytes(KeyParts parts, std::string payload) {
  return *to_bytes(heading, GraphEntry{std::move(parts), std::move(payload)});
}

std::optional<GraphEntry> read_entry(std::string_view bytes) {
  return from_bytes<GraphEntry>(heading, bytes);
}

Diagnostic damaged_entry() {
  return input_error("cache.entry", "the stored entry is damaged");
}

std::vector<KeyDifference> key_differences(const KeyParts& a, const KeyParts& b, std::size_t most) {
  std::vector<KeyDifference> out;
  const auto value_in = [](const KeyParts& parts, const std::string& name) -> std::string_view {
    const auto found = std::ranges::find(parts, name, &KeyParts::value_type::first);
    return found == parts.end() ? std::string_view() : found->second;
  };
  std::vector<std::string> names;
  for (const KeyParts* parts : {&a, &b})
    for (const auto& [name, value] : *parts)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  for (const std::string& name : names) {
    const std::string_view x = value_in(a, name), y = value_in(b, name);
    if (x == y) continue;
    KeyDifference difference{name, {}};
    const auto in_x = lines_of(x), in_y = lines_of(y);
    std::size_t left_out = 0;
    const auto add = [&](std::string_view sign, const std::vector<std::string_view>& lines) {
      for (std::size_t i = 0; i < lines.size(); ++i)
        if (i < most)
          difference.lines.push_back(fmt::format("{} {}", sign, lines[i]));
        else
          ++left_out;
    };
    add("-", only_in(in_x, in_y));
    add("+", only_in(in_y, in_x));
    if (difference.lines.empty()) difference.lines.emplace_back("the same lines in another order");
    if (left_out > 0) difference.lines.push_back(fmt::format("... and {} more", left_out));
    out.push_back(std::move(difference));
  }
  return out;
}

namespace {

Result<KeyParts> key_in(StoreFile& store, const std::string& id) {
  TRY(const CompiledObject object, store.compiled(id));
  auto entry = read_entry(object.bytes);
  if (!entry)
    return input_error("store.id", fmt::format("{} is no entry of a whole graph; `partita store list` shows those as "
                                               "{} and {}",
                                               id, autograd_cache, fxgraph_cache));
  return std::move(entry->parts);
}

}  // namespace

Result<EntryDifference> explain_entries(StoreFile& store, const std::string& id, const std::string& other) {
  TRY(const KeyParts asked, key_in(store, id));
  if (!other.empty()) {
    TRY(const KeyParts second, key_in(store, other));
    return EntryDifference{id, other, key_differences(asked, second)};
  }
  constexpr std::int64_t most_read = 500, most_compared = 50;
  TRY(const std::vector<StoredEntry> rows, store.entries(most_read));
  const auto row_id = [](const StoredEntry& e) { return fmt::format("compiled/{}", e.id); };
  auto at = std::ranges::find(rows, id, row_id);
  EntryDifference nearest{{}, id, {}};
  std::size_t fewest = SIZE_MAX;
  std::int64_t compared = 0;
  for (auto row = at; row != rows.end() && compared < most_compared; ++row) {
    if (row == at || row->cache != at->cache) continue;
    const auto key = key_in(store, row_id(*row));
    if (!key) continue;  // another user's, or damaged
    ++compared;
    std::size_t lines = 0;
    for (const KeyDifference& d : key_differences(*key, asked, SIZE_MAX)) lines += d.lines.size();
    if (lines >= fewest) continue;
    fewest = lines;
    nearest.a = row_id(*row);
    nearest.parts = key_differences(*key, asked);
  }
  if (nearest.a.empty())
    return input_error("store.id", fmt::format("there is no entry of the same cache before {} to compare it with", id));
  return nearest;
}

std::string_view name_of(CacheOutcome outcome) {
  static constexpr std::string_view names[] = {"hit", "miss", "bypass", "saved"};
  return names[static_cast<std::size_t>(outcome)];
}

namespace {

/// PyTorch's artifact of an event. It has none of what is saved.
void write_trace(const CacheEvent& e) {
  if (!trace::on() || e.outcome == CacheOutcome::Saved) return;
  const std::string state(name_of(e.outcome));
  nlohmann::ordered_json about = {{"graph", e.graph}, {"cache_state", state}};
  if (!e.key.empty()) about["key"] = e.key;
  if (!e.reason.empty()) about["cache_bypass_reason"] = e.reason;
  const char* stem = e.cache == autograd_cache ? "aotautograd_cache_" : "fx_graph_cache_";
  trace::artifact((stem + state).c_str(), about);
}

}  // namespace

void CacheLog::add(CacheEvent event) {
  write_trace(event);
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
}

std::vector<CacheEvent> CacheLog::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

std::map<std::string, std::int64_t> CacheLog::counts() const {
  std::map<std::string, std::int64_t> counts;
  for (const CacheEvent& e : events()) ++counts[fmt::format("{}_{}", e.cache, name_of(e.outcome))];
  return counts;
}

CacheLog& cache_log() {
  static CacheLog log;
  return log;
}

std::optional<GraphEntry> find_entry(CodeStore& store, std::string_view cache, const std::string& key,
                                     const std::string& graph) {
  const auto bytes = store.find(key);
  if (!bytes) return std::nullopt;
  auto entry = read_entry(*bytes);
  if (entry && key_of(entry->parts) == key) return entry;
  warn_unreadable(cache, graph, input_error("store.entry", "it does not fit its key"));
  return std::nullopt;
}

std::optional<std::string> find_entry(CodeStore& store, std::string_view cache, const KeyParts& parts,
                                      const std::string& graph) {
  auto entry = find_entry(store, cache, key_of(parts), graph);
  if (!entry || entry->parts != parts) return std::nullopt;
  return std::move(entry->payload);
}

void put_entry(CodeStore& store, std::string_view cache, const KeyParts& parts, std::string payload,
               const std::string& graph) {
  const std::string key = key_of(parts);
  if (store.put(key, entry_bytes(parts, std::move(payload)), graph, std::string(cache)))
    cache_log().add({cache, CacheOutcome::Saved, graph, key, {}});
}

void warn_unreadable(std::string_view cache, const std::string& graph, const Diagnostic& why) {
  fmt::print(stderr, "partita: warning: an entry of the {} for {} cannot be used ({}); it is compiled again\n", cache,
             graph, why.line());
}

Status bypass(std::string_view cache, const std::string& graph, const std::string& reason, const Config& config) {
  cache_log().add({cache, CacheOutcome::Bypass, graph, {}, reason});
  if (!config.strict_autograd_cache) return {};
  return unsupported("cache.bypass", fmt::format("{} is bypassed: {}; do without strict_autograd_cache", cache, reason),
                     {.graph = graph});
}

}  // namespace partita
