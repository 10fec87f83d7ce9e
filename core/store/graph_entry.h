#pragma once
// What the caches of whole graphs keep, and what they did. There are two, as in PyTorch: "autograd_cache" finds what
// AOTAutograd made of a program, "fxgraph_cache" what a compiler made of one graph.
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/config.h"
#include "core/base/result.h"

namespace partita {

class CodeStore;
class StoreFile;

/// All that an entry depends on, by name: "graph" is its text. The entry keeps them, so that two keys can be compared.
using KeyParts = std::vector<std::pair<std::string, std::string>>;
/// The parts' content address.
std::string key_of(const KeyParts& parts);

/// An entry as the store has it: the key's parts, then the payload.
std::string entry_bytes(KeyParts parts, std::string payload);
struct GraphEntry {
  KeyParts parts;
  std::string payload;
};
/// Nullopt: bytes that entry_bytes() did not make.
std::optional<GraphEntry> read_entry(std::string_view bytes);
/// Error cache.entry: a payload is not what a cache writes.
Diagnostic damaged_entry();

/// Where two keys differ: a line per part, and for texts of several lines the lines that only one of them has, marked
/// by - and +, at most `most` of them. Empty when they are equal.
struct KeyDifference {
  std::string part;
  std::vector<std::string> lines;
};
/// The parts in which they differ, in order.
std::vector<KeyDifference> key_differences(const KeyParts& a, const KeyParts& b, std::size_t most = 20);

/// Two kept entries by their rows ("compiled/3"), and where their keys differ.
struct EntryDifference {
  std::string a, b;
  std::vector<KeyDifference> parts;
};
/// Without `other`, `id` is compared with the nearest of the entries that the same cache had made before it, which says
/// why none of them was found. Error store.id: a row is no entry, or there is none before it.
Result<EntryDifference> explain_entries(StoreFile& store, const std::string& id, const std::string& other = {});

enum class CacheOutcome : unsigned char { Hit, Miss, Bypass, Saved };
std::string_view name_of(CacheOutcome outcome);  ///< "hit"

struct CacheEvent {
  std::string_view cache;
  CacheOutcome outcome = CacheOutcome::Miss;
  std::string graph, key;
  std::string reason;  ///< of a bypass, or of a miss that is not simply that nothing is there
};
/// Counts what caches do in this process, and writes it into the trace; threads may add.
class CacheLog {
 public:
  /// Adds one, and writes it into the trace; all so far.
  void add(CacheEvent event);
  std::vector<CacheEvent> events() const;
  /// By PyTorch's names of the counters: "autograd_cache_hit", "fxgraph_cache_bypass".
  std::map<std::string, std::int64_t> counts() const;

 private:
  mutable std::mutex mutex_;
  std::vector<CacheEvent> events_;
};
/// That of this process.
CacheLog& cache_log();

constexpr std::string_view autograd_cache = "autograd_cache", fxgraph_cache = "fxgraph_cache";

/// Looks an entry's payload up. An entry of other parts is none.
std::optional<std::string> find_entry(CodeStore& store, std::string_view cache, const KeyParts& parts,
                                      const std::string& graph);
std::optional<GraphEntry> find_entry(CodeStore& store, std::string_view cache, const std::string& key,
                                     const std::string& graph);
/// Keeps an entry, and counts it as saved when it is.
void put_entry(CodeStore& store, std::string_view cache, const KeyParts& parts, std::string payload,
               const std::string& graph);
/// Says in one line that the payload of an entry cannot be used, and that its graph is compiled again.
void warn_unreadable(std::string_view cache, const std::string& graph, const Diagnostic& why);
/// Counts a bypass. Error cache.bypass if `config` has strict_autograd_cache.
Status bypass(std::string_view cache, const std::string& graph, const std::string& reason, const Config& config);

}  // namespace partita
