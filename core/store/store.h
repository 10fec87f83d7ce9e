#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/store/sqlite.h"
#include "core/store/trust.h"

namespace partita {

/// Everything that compiled code depends on.
struct CacheKey {
  std::string graph;         ///< its text, or a printed plan
  std::string options;       ///< what the compiler was told, in words
  std::string cpu_features;  ///< of the machine the code is for
  std::string version;       ///< of Partita and its code generator
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
  CheckRow row;  ///< without its report, which check_report gives
};

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

/// What is remembered between runs: compiled code, runs, checks, snapshots, a minification's tries. One SQLite file in
/// write-ahead mode that any number of processes share. Not for several threads at once.
class Store {
 public:
  /// $PARTITA_STORE (a folder, or a file ending in .sqlite), else $XDG_CACHE_HOME/partita, else ~/.cache/partita; empty
  /// when none of them is an absolute path.
  static std::string default_file();
  /// Creates the file and its folder for this user alone, or migrates it. Errors store.path, store.corrupt,
  /// store.read_only, store.version, ...
  static Result<Store> open(const std::string& file);

  /// Why compiled code is neither kept nor loaded here: somebody else may have written it (store.untrusted). Null when
  /// it is kept and loaded.
  const Diagnostic* code_refused() const { return key_ ? nullptr : &key_.error(); }

  /// Null when nothing is stored under the key, or when what is stored was not signed by this user (it is then
  /// dropped).
  Result<std::optional<CompiledObject>> find_compiled(const CacheKey& key);
  /// Drops the least recently used objects when all together exceed `limit_bytes`.
  Status put_compiled(const CacheKey& key, const CompiledObject& object);
  Status add_run(const RunRow& row);
  Status add_check(const CheckRow& row);
  Status add_snapshot(const SnapshotRow& row);  ///< once for equal texts

  /// Answers that a minification got, so that a run that was ended goes on where it was. `session`: what is asked of
  /// which graph; `candidate`: what was tried.
  Result<std::optional<std::string>> find_try(const std::string& session, std::uint64_t candidate);
  Status add_try(const std::string& session, std::uint64_t candidate, const std::string& answer);
  Status forget_tries(const std::string& session);  ///< and those of all sessions that are a month old

  Result<StoreStats> stats();
  Result<std::vector<StoreEntry>> list();                       ///< newest first
  Result<std::vector<StoredRun>> runs(std::int64_t limit);      ///< newest first
  Result<std::vector<StoredCheck>> checks(std::int64_t limit);  ///< newest first
  Result<std::string> check_report(std::int64_t id);            ///< error store.id when there is none
  /// "compiled/3": what is known of the row, one "name: value" a line, then its text or report.
  Result<std::string> show(std::string_view id);
  /// Empty when sound; else a line for each damaged page and for each row that was not signed by this user.
  Result<std::vector<std::string>> verify();
  Status clear();
  Status export_to(const std::string& file);  ///< a copy that is one file, consistent while others write

  std::int64_t limit_bytes = std::int64_t{2} << 30;

 private:
  Store(Database db, Result<SigningKey> key) : db_(std::move(db)), key_(std::move(key)) {}
  Status migrate();
  Status evict();
  Database db_;
  Result<SigningKey> key_;
};

/// Adds one row to the store of that file, for those who keep no store open; does nothing when `file` is empty.
Status keep_in_store(const std::string& file, const CheckRow& row);
Status keep_in_store(const std::string& file, const RunRow& row);

}  // namespace partita
