// Opens and migrates the SQLite file, and has the statements that write and look up rows. Compiled objects are signed
// and evicted by last use. Lists and text about rows are in browse.cpp.
#include "core/store/store.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "core/base/config.h"
#include "core/base/hash.h"
#include "core/base/user_folder.h"

namespace partita {
namespace {

namespace fs = std::filesystem;

/// String i migrates the file from user_version i to i + 1. Never change a string that was released; append.
constexpr const char* migrations[] = {
    R"(
    CREATE TABLE compiled(id INTEGER PRIMARY KEY, key TEXT NOT NULL, kind TEXT NOT NULL, graph TEXT NOT NULL,
                          options TEXT NOT NULL, bytes INTEGER NOT NULL, hash TEXT NOT NULL, object BLOB NOT NULL,
                          at INTEGER NOT NULL, used INTEGER NOT NULL, hits INTEGER NOT NULL DEFAULT 0);
    CREATE UNIQUE INDEX compiled_key ON compiled(key);
    CREATE INDEX compiled_used ON compiled(used);
    CREATE TABLE runs(id INTEGER PRIMARY KEY, at INTEGER NOT NULL, path TEXT NOT NULL, graph TEXT NOT NULL,
                      backend TEXT NOT NULL, options TEXT NOT NULL, milliseconds REAL NOT NULL, outcome TEXT NOT NULL);
    CREATE TABLE checks(id INTEGER PRIMARY KEY, at INTEGER NOT NULL, path TEXT NOT NULL, graph TEXT NOT NULL,
                        kind TEXT NOT NULL, ok INTEGER NOT NULL, report TEXT NOT NULL);
    CREATE TABLE snapshots(id INTEGER PRIMARY KEY, at INTEGER NOT NULL, graph TEXT NOT NULL, pass TEXT NOT NULL,
                           hash TEXT NOT NULL, text TEXT NOT NULL);
    CREATE UNIQUE INDEX snapshots_hash ON snapshots(hash, pass);
    )",
    R"(
    CREATE TABLE tries(id INTEGER PRIMARY KEY, at INTEGER NOT NULL, session TEXT NOT NULL, candidate INTEGER NOT NULL,
                       answer TEXT NOT NULL);
    CREATE UNIQUE INDEX tries_candidate ON tries(session, candidate);
    )",
    // A hash says nothing of who wrote the code: entries are signed from here on, and older ones are made again.
    R"(
    DELETE FROM compiled;
    ALTER TABLE compiled RENAME COLUMN hash TO signature;
    )",
    R"(
    CREATE TABLE notes(id INTEGER PRIMARY KEY, at INTEGER NOT NULL, path TEXT NOT NULL, graph TEXT NOT NULL,
                       node TEXT NOT NULL, text TEXT NOT NULL);
    CREATE UNIQUE INDEX notes_node ON notes(path, graph, node);
    )",
};
constexpr std::int64_t version = std::size(migrations);
constexpr int busy_milliseconds = 10000;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Result<std::int64_t> user_version(sqlite3* db) {
  return number(db, "PRAGMA user_version");
}

Result<SigningKey> key_for(const std::string& file) {
  TRY_DO(check_private(file));
  return user_key();
}

}  // namespace

std::string CacheKey::hash() const {
  std::string text;
  for (const std::string* part : {&version, &cpu_features, &options, &graph}) add_part(text, *part);
  return content_hash(text);
}

std::string StoreFile::default_file() {
  fs::path folder = config().store;
  if (const char* given = std::getenv("PARTITA_STORE"); folder.empty() && given) folder = given;
  if (!folder.empty()) {
    std::error_code ignored;
    if (folder.extension() == ".sqlite" || fs::is_regular_file(folder, ignored)) return folder.string();
  } else {
    const std::string cache = user_folder("XDG_CACHE_HOME", ".cache");
    if (cache.empty()) return {};
    folder = fs::path(cache) / "partita";
  }
  return (folder / "store.sqlite").string();
}

namespace {

/// Switches to WAL mode. When two processes make a file at once, this needs a lock for which SQLite's busy timeout does
/// not wait.
Status enter_wal(sqlite3* db) {
  constexpr int step_milliseconds = 10;
  for (int waited = 0;; waited += step_milliseconds) {
    Status done = execute(db, "PRAGMA journal_mode=WAL");
    if (done || sqlite3_errcode(db) != SQLITE_BUSY || waited >= busy_milliseconds) return done;
    sqlite3_sleep(step_milliseconds);
  }
}

}  // namespace

Result<StoreFile> StoreFile::open(const std::string& file) {
  if (!fs::path(file).is_absolute())
    return input_error("store.path", "the store needs an absolute path; set PARTITA_STORE or HOME to one",
                       Where{.file = file});
  TRY_DO(make_private_file(file));
  sqlite3* raw = nullptr;
  const int opened =
      sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  StoreFile store(Database(raw), key_for(file));
  if (opened != SQLITE_OK) {
    Diagnostic error = sqlite_error(raw);
    error.where.file = file;
    return error;
  }
  sqlite3_busy_timeout(raw, busy_milliseconds);
  if (sqlite3_db_readonly(raw, "main") == 1)
    return input_error("store.read_only", "the store is read-only; set PARTITA_STORE to a folder that can be written",
                       Where{.file = file});
  // The file may come from somebody else: its views and triggers call no functions.
  TRY_DO(execute(raw, "PRAGMA trusted_schema=OFF"));
  TRY_DO(execute(raw, "PRAGMA page_size=32768"));
  TRY_DO(enter_wal(raw));
  TRY_DO(execute(raw, "PRAGMA synchronous=NORMAL"));
  TRY_DO(store.migrate());
  return store;
}

Status StoreFile::migrate() {
  sqlite3* db = db_.get();
  TRY(std::int64_t have, user_version(db));
  if (have == version) return {};
  TRY_DO(execute(db, "BEGIN IMMEDIATE"));
  const auto upgrade = [&]() -> Status {
    TRY(have, user_version(db));  // another process may have migrated it
    if (have < 0 || have > version)
      return input_error(
          "store.version",
          fmt::format("the store has version {}, this program knows {}; use a newer partita or another PARTITA_STORE",
                      have, version),
          Where{.file = sqlite3_db_filename(db, "main")});
    for (; have < version; ++have) TRY_DO(execute(db, migrations[have]));
    return execute(db, fmt::format("PRAGMA user_version={}", version));
  };
  if (Status done = upgrade(); !done) {
    sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr);
    return done;
  }
  return execute(db, "COMMIT");
}

Result<std::optional<CompiledObject>> StoreFile::find_compiled(const CacheKey& key) {
  if (!key_) return std::optional<CompiledObject>();
  const std::string address = key.hash();
  CompiledObject object;
  std::int64_t id = 0;
  bool sound = false;
  {
    TRY(Statement s,
        prepared(db_.get(), "SELECT id, object, graph, kind, signature FROM compiled WHERE key = ?", address));
    TRY(const bool found, s.step());
    if (!found) return std::optional<CompiledObject>();
    id = s.integer(0);
    object = {s.text(1), s.text(2), s.text(3)};
    sound = same_signature(sign(*key_, {address, object.kind, object.bytes}), s.text(4));
  }
  if (!sound) {
    ++damaged;
    TRY_DO(run(db_.get(), "DELETE FROM compiled WHERE id = ?", id));
    return std::optional<CompiledObject>();
  }
  // Where nothing can be written, what was found is still good.
  if (Status noted = run(db_.get(), "UPDATE compiled SET used = ?, hits = hits + 1 WHERE id = ?", now(), id);
      !noted && noted.error().code != "store.full" && noted.error().code != "store.read_only")
    return std::move(noted).error();
  return std::optional(std::move(object));
}

Status StoreFile::put_compiled(const CacheKey& key, const CompiledObject& object) {
  if (!key_) return {};
  const std::string address = key.hash(), signature = sign(*key_, {address, object.kind, object.bytes});
  TRY_DO(run(db_.get(),
             "INSERT INTO compiled(key, kind, graph, options, bytes, signature, object, at, used) "
             "VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT(key) DO UPDATE SET kind = excluded.kind, bytes = excluded.bytes, "
             "signature = excluded.signature, object = excluded.object, used = excluded.used",
             address, object.kind, object.graph_name, key.options, static_cast<std::int64_t>(object.bytes.size()),
             signature, Blob{object.bytes}, now(), now()));
  return evict();
}

Status StoreFile::evict() {
  TRY(const std::int64_t total, number(db_.get(), "SELECT coalesce(sum(bytes), 0) FROM compiled"));
  if (total <= limit_bytes) return {};
  return run(db_.get(),
             "DELETE FROM compiled WHERE id IN (SELECT id FROM (SELECT id, sum(bytes) OVER (ORDER BY used DESC, id "
             "DESC) AS upto FROM compiled) WHERE upto > ?)",
             limit_bytes);
}

Status StoreFile::add_run(const RunRow& row) {
  return run(db_.get(),
             "INSERT INTO runs(at, path, graph, backend, options, milliseconds, outcome) VALUES(?,?,?,?,?,?,?)", now(),
             row.path, row.graph, row.backend, row.options, row.milliseconds, row.outcome);
}

Status StoreFile::add_check(const CheckRow& row) {
  return run(db_.get(), "INSERT INTO checks(at, path, graph, kind, ok, report) VALUES(?,?,?,?,?,?)", now(), row.path,
             row.graph, row.kind, std::int64_t{row.ok}, row.report);
}

Status StoreFile::add_snapshot(const SnapshotRow& row) {
  return run(db_.get(), "INSERT OR IGNORE INTO snapshots(at, graph, pass, hash, text) VALUES(?,?,?,?,?)", now(),
             row.graph, row.pass, content_hash(row.text), row.text);
}

Result<std::optional<std::string>> StoreFile::find_try(const std::string& session, std::uint64_t candidate) {
  TRY(Statement s, prepared(db_.get(), "SELECT answer FROM tries WHERE session = ? AND candidate = ?", session,
                            static_cast<std::int64_t>(candidate)));
  TRY(const bool found, s.step());
  return found ? std::optional(s.text(0)) : std::nullopt;
}

Status StoreFile::add_try(const std::string& session, std::uint64_t candidate, const std::string& answer) {
  return run(db_.get(), "INSERT OR REPLACE INTO tries(at, session, candidate, answer) VALUES(?,?,?,?)", now(), session,
             static_cast<std::int64_t>(candidate), answer);
}

Status StoreFile::forget_tries(const std::string& session) {
  constexpr std::int64_t month = 30 * 24 * 3600;
  return run(db_.get(), "DELETE FROM tries WHERE session = ? OR at < ?", session, now() - month);
}

std::string stored_path(const std::string& path) {
  std::error_code failed;
  const fs::path whole = fs::weakly_canonical(path, failed);
  std::string text = (failed ? fs::absolute(path, failed) : whole).string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

Result<std::vector<NodeNote>> StoreFile::notes(const std::string& path, const std::string& graph) {
  TRY(Statement s,
      prepared(db_.get(), "SELECT node, text FROM notes WHERE path = ? AND graph = ? ORDER BY id", path, graph));
  std::vector<NodeNote> out;
  TRY_DO(s.each_row([&] { out.push_back({s.text(0), s.text(1)}); }));
  return out;
}

Status StoreFile::put_note(const std::string& path, const std::string& graph, const NodeNote& note) {
  return run(db_.get(),
             "INSERT INTO notes(at, path, graph, node, text) VALUES(?,?,?,?,?) "
             "ON CONFLICT(path, graph, node) DO UPDATE SET text = excluded.text, at = excluded.at",
             now(), path, graph, note.node, note.text);
}

Status StoreFile::drop_note(const std::string& path, const std::string& graph, const std::string& node) {
  return run(db_.get(), "DELETE FROM notes WHERE path = ? AND graph = ? AND node = ?", path, graph, node);
}

Status keep_in_store(const std::string& file, const CheckRow& row) {
  if (file.empty()) return {};
  TRY(StoreFile store, StoreFile::open(file));
  return store.add_check(row);
}
Status keep_in_store(const std::string& file, const RunRow& row) {
  if (file.empty()) return {};
  TRY(StoreFile store, StoreFile::open(file));
  return store.add_run(row);
}

}  // namespace partita
