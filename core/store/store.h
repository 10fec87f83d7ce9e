#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/config.h"
#include "core/store/sqlite.h"
#include "core/store/trust.h"

namespace partita {

/// Everything that compiled code depends on.
struct CacheKey {
  std::string graph;         ///< its text, or the text of a plan
  std::string options;       ///< the compiler's options, as text
  std::string cpu_features;  ///< features of the machine that the code is for
  std::string version;       ///< versions of Partita and its code generator
  std::string hash() const;  ///< the content address
};

struct CompiledObject {
  std::string bytes;
  std::string graph_name;
  std::string kind;  ///< what the bytes are: "elf", "plan", ...
};

struct RunRow {
  std::string path, graph, backend, options;
  double milliseconds = 0;
  std::string outcome;  ///< "ok", or the error's code
};

struct CheckRow {
  std::string path, graph, kind;  ///< kind: "compare", "passes", "debug"
  bool ok = true;
  std::string report;  ///< JSON
};

struct SnapshotRow {
  std::string graph, pass, text;
};

struct StoredRun {
  std::int64_t id = 0;
  std::int64_t at = 0;  ///< seconds since 1970
  RunRow row;
};
struct StoredCheck {
  std::int64_t id = 0;
  std::int64_t at = 0;
  CheckRow row;  ///< without its report; check_report gives it
};
/// An entry of a cache of whole graphs (graph_entry.h), as a compilation that missed has made it.
struct StoredEntry {
  std::int64_t id = 0;
  std::int64_t at = 0;  ///< seconds since 1970
  std::string graph, cache;
  std::int64_t hits = 0;  ///< how often it was found
};

/// What a user wrote at a node. A bookmark is a note without text.
struct NodeNote {
  std::string node, text;
  bool operator==(const NodeNote&) const = default;
};
/// The name of a file or folder in the store: absolute, without "..", links and final slash.
std::string stored_path(const std::string& path);

/// A row of any table, for `store list`.
struct StoreEntry {
  std::string table;
  std::int64_t id = 0;
  std::int64_t at = 0;  ///< seconds since 1970
  std::string title;
  std::int64_t bytes = 0;
};

struct StoreStats {
  std::string file;
  std::int64_t file_bytes = 0;
  std::int64_t compiled = 0, compiled_bytes = 0, hits = 0, runs = 0, checks = 0, snapshots = 0;
};

/// What is kept between runs: compiled code, runs, checks, snapshots, notes, and the tries of minifications. It is one
/// SQLite file in write-ahead mode, which any number of processes may share. Not thread-safe.
class StoreFile {
 public:
  /// The configuration's `store`, else $PARTITA_STORE (a folder, or a file ending in .sqlite), else
  /// $XDG_CACHE_HOME/partita, else ~/.cache/partita; empty when none of them is an absolute path.
  static std::string default_file();
  /// Creates the file and its folder for this user alone, or migrates it. Errors store.path, store.corrupt,
  /// store.read_only, store.version, ...
  static Result<StoreFile> open(const std::string& file);

  /// Why compiled code is neither kept nor loaded here: somebody else may have written it (store.untrusted). Null when
  /// it is kept and loaded.
  const Diagnostic* code_refused() const { return key_ ? nullptr : &key_.error(); }

  /// nullopt when nothing is stored under the key, or when the stored bytes are damaged, in which case they are
  /// dropped.
  Result<std::optional<CompiledObject>> find_compiled(const CacheKey& key);
  /// Stores an object, and drops the least recently used ones if all exceed `limit_bytes`.
  Status put_compiled(const CacheKey& key, const CompiledObject& object);
  Status add_run(const RunRow& row);
  Status add_check(const CheckRow& row);
  Status add_snapshot(const SnapshotRow& row);  ///< stores equal texts once

  /// Answers of a minification's oracle, so that an interrupted run can go on. `session`: the question and the graph;
  /// `candidate`: what was tried.
  Result<std::optional<std::string>> find_try(const std::string& session, std::uint64_t candidate);
  Status add_try(const std::string& session, std::uint64_t candidate, const std::string& answer);
  Status forget_tries(const std::string& session);  ///< also forgets all sessions older than a month

  /// Notes at nodes of a graph of the file `path` (as stored_path gives it), in the order in which they were made.
  Result<std::vector<NodeNote>> notes(const std::string& path, const std::string& graph);
  Status put_note(const std::string& path, const std::string& graph, const NodeNote& note);
  Status drop_note(const std::string& path, const std::string& graph, const std::string& node);

  /// How much is kept.
  Result<StoreStats> stats();
  Result<std::vector<StoreEntry>> list();                        ///< newest first
  Result<std::vector<StoredRun>> runs(std::int64_t limit);       ///< newest first
  Result<std::vector<StoredCheck>> checks(std::int64_t limit);   ///< newest first
  Result<std::vector<StoredEntry>> entries(std::int64_t limit);  ///< newest first
  Result<std::string> check_report(std::int64_t id);             ///< error store.id when there is no such row
  /// Text about the row "compiled/3": one "name: value" per line, then its text or report.
  Result<std::string> show(std::string_view id);
  /// The object of the row "compiled/3". Errors store.id, store.untrusted: it was not signed by this user.
  Result<CompiledObject> compiled(std::string_view id);
  /// One line per damaged row or page, and per table, column or index that is missing, is not as this program makes it,
  /// or is not of this program; empty when there is none.
  Result<std::vector<std::string>> verify();
  Status clear();
  Status export_to(const std::string& file);  ///< copies the store to one file, consistent while others write

  std::int64_t limit_bytes = static_cast<std::int64_t>(config().store_limit);
  int damaged = 0;  ///< entries that find_compiled() dropped

 private:
  StoreFile(Database db, Result<SigningKey> key) : db_(std::move(db)), key_(std::move(key)) {}
  Status migrate();
  Status evict();
  Database db_;
  Result<SigningKey> key_;
};

/// Adds one row to the store in that file, for callers that keep no store open; does nothing if `file` is empty.
Status keep_in_store(const std::string& file, const CheckRow& row);
Status keep_in_store(const std::string& file, const RunRow& row);

}  // namespace partita
