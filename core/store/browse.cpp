// The queries of `partita store` and of the store's page.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "core/base/output.h"
#include "core/store/graph_entry.h"
#include "core/store/store.h"

namespace partita {
namespace {

/// How rows of a table are listed and shown.
struct Table {
  std::string_view name;
  const char* rows;     ///< SQL: the table, and which of its rows
  const char* title;    ///< SQL
  const char* bytes;    ///< SQL
  const char* columns;  ///< SQL list for `show`
  const char* big;      ///< column printed in full; null: it holds bytes, which are not printed
};
constexpr const char *code = "compiled WHERE kind <> 'limit'", *limits = "compiled WHERE kind = 'limit'";
constexpr Table tables[] = {
    {"compiled", code, "graph || ' ' || kind", "bytes", "key, kind, graph, options, bytes, signature, at, used, hits",
     nullptr},
    {"measured", limits, "graph", "bytes", "at, used, graph", "object"},
    {"runs", "runs", "path || ' ' || graph || ' ' || backend || ' ' || outcome", "0",
     "at, path, graph, backend, options, milliseconds, outcome", nullptr},
    {"checks", "checks", "path || ' ' || graph || ' ' || kind || iif(ok, ' ok', ' FAILED')", "length(report)",
     "at, path, graph, kind, ok", "report"},
    {"snapshots", "snapshots", "graph || ' after ' || pass", "length(text)", "at, graph, pass, hash", "text"},
    {"notes", "notes", "path || ' ' || graph || ' ' || node", "length(text)", "at, path, graph, node", "text"},
    {"tries", "tries", "'minify ' || session", "length(answer)", "at, session, candidate", "answer"},
};

}  // namespace

Result<StoreStats> StoreFile::stats() {
  sqlite3* db = db_.get();
  StoreStats out;
  out.file = sqlite3_db_filename(db, "main");
  std::error_code ignored;
  out.file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(out.file, ignored));
  TRY(out.compiled, number(db, fmt::format("SELECT count(*) FROM {}", code)));
  TRY(out.compiled_bytes, number(db, fmt::format("SELECT coalesce(sum(bytes), 0) FROM {}", code)));
  TRY(out.hits, number(db, fmt::format("SELECT coalesce(sum(hits), 0) FROM {}", code)));
  TRY(out.runs, number(db, "SELECT count(*) FROM runs"));
  TRY(out.checks, number(db, "SELECT count(*) FROM checks"));
  TRY(out.snapshots, number(db, "SELECT count(*) FROM snapshots"));
  return out;
}

Result<std::vector<StoreEntry>> StoreFile::list() {
  std::vector<StoreEntry> out;
  for (const Table& t : tables) {
    TRY(Statement s,
        Statement::prepare(db_.get(), fmt::format("SELECT id, at, {}, {} FROM {} ORDER BY at DESC, id DESC", t.title,
                                                  t.bytes, t.rows)));
    TRY_DO(
        s.each_row([&] { out.push_back({std::string(t.name), s.integer(0), s.integer(1), s.text(2), s.integer(3)}); }));
  }
  std::ranges::stable_sort(out, [](const StoreEntry& a, const StoreEntry& b) { return a.at > b.at; });
  return out;
}

Result<std::vector<StoredRun>> StoreFile::runs(std::int64_t limit) {
  TRY(Statement s, prepared(db_.get(),
                            "SELECT id, at, path, graph, backend, options, milliseconds, outcome FROM runs "
                            "ORDER BY at DESC, id DESC LIMIT ?",
                            limit));
  std::vector<StoredRun> out;
  TRY_DO(s.each_row([&] {
    out.push_back({s.integer(0), s.integer(1), {s.text(2), s.text(3), s.text(4), s.text(5), s.real(6), s.text(7)}});
  }));
  return out;
}

Result<std::vector<StoredCheck>> StoreFile::checks(std::int64_t limit) {
  TRY(Statement s,
      prepared(db_.get(), "SELECT id, at, path, graph, kind, ok FROM checks ORDER BY at DESC, id DESC LIMIT ?", limit));
  std::vector<StoredCheck> out;
  TRY_DO(s.each_row(
      [&] { out.push_back({s.integer(0), s.integer(1), {s.text(2), s.text(3), s.text(4), s.integer(5) != 0, {}}}); }));
  return out;
}

Result<std::vector<StoredEntry>> StoreFile::entries(std::int64_t limit) {
  TRY(Statement s, prepared(db_.get(),
                            "SELECT id, at, graph, kind, hits FROM compiled WHERE kind IN (?, ?) "
                            "ORDER BY at DESC, id DESC LIMIT ?",
                            autograd_cache, fxgraph_cache, limit));
  std::vector<StoredEntry> out;
  TRY_DO(s.each_row([&] { out.push_back({s.integer(0), s.integer(1), s.text(2), s.text(3), s.integer(4)}); }));
  return out;
}

Result<std::string> StoreFile::check_report(std::int64_t id) {
  TRY(Statement s, prepared(db_.get(), "SELECT report FROM checks WHERE id = ?", id));
  TRY(const bool row, s.step());
  if (!row) return input_error("store.id", fmt::format("checks/{} is not in the store any more", id));
  return s.text(0);
}

namespace {

Result<std::pair<const Table*, std::int64_t>> row_of(std::string_view id) {
  const auto slash = id.find('/');
  const auto* table = std::ranges::find(tables, id.substr(0, slash), &Table::name);
  std::int64_t row_id = 0;
  const std::string_view digits = slash == std::string_view::npos ? std::string_view() : id.substr(slash + 1);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), row_id);
  if (table == std::end(tables) || digits.empty() || parsed.ptr != digits.data() + digits.size())
    return input_error("store.id",
                       fmt::format("{} is not a row of the store; partita store list shows rows as TABLE/NUMBER", id));
  return std::pair(table, row_id);
}

Diagnostic no_row(std::string_view id) {
  return input_error("store.id", fmt::format("the store has no {}; partita store list shows its rows", id));
}

}  // namespace

Result<CompiledObject> StoreFile::compiled(std::string_view id) {
  TRY(const auto row, row_of(id));
  if (row.first->name != "compiled") return no_row(fmt::format("compiled code {}", id));
  if (!key_) return key_.error();
  TRY(Statement s,
      prepared(db_.get(), "SELECT key, object, graph, kind, signature FROM compiled WHERE id = ?", row.second));
  TRY(const bool found, s.step());
  if (!found) return no_row(id);
  CompiledObject object{s.text(1), s.text(2), s.text(3)};
  if (!same_signature(sign(*key_, {s.text(0), object.kind, object.bytes}), s.text(4)))
    return input_error("store.untrusted", fmt::format("{} was not signed by this user", id));
  return object;
}

Result<std::string> StoreFile::show(std::string_view id) {
  TRY(const auto row, row_of(id));
  const auto [table, row_id] = row;
  const std::string sql = fmt::format("SELECT {}{}{} FROM (SELECT * FROM {}) WHERE id = ?", table->columns,
                                      table->big ? ", " : "", table->big ? table->big : "", table->rows);
  TRY(Statement s, prepared(db_.get(), sql, row_id));
  TRY(const bool found, s.step());
  if (!found) return no_row(id);
  std::string text;
  std::string_view columns = table->columns;
  for (int i = 0; !columns.empty(); ++i) {
    const std::string_view name = columns.substr(0, columns.find(','));
    columns.remove_prefix(std::min(columns.size(), name.size() + 2));
    const bool time = name == "at" || name == "used";
    text += time ? fmt::format("{}: {:%F %T}\n", name, fmt::localtime(static_cast<std::time_t>(s.integer(i))))
                 : fmt::format("{}: {}\n", name, s.text(i));
    if (columns.empty() && table->big) text += s.text(i + 1) + "\n";
  }
  return text;
}

namespace {

/// What a database is made of: "column path of the table runs" -> "TEXT, not null".
using Structure = std::map<std::string, std::string>;
constexpr std::string_view column_of = "column ";

Result<Structure> structure(sqlite3* db) {
  Structure out;
  constexpr const char* queries[] = {
      "SELECT type || ' ' || name, '' FROM sqlite_master WHERE type <> 'index' AND name NOT LIKE 'sqlite\\_%' ESCAPE "
      "'\\'",
      "SELECT 'column ' || x.name || ' of the table ' || m.name, x.type || iif(x.\"notnull\", ', not null', '') || "
      "iif(x.pk, ', primary key', '') || coalesce(', by default ' || x.dflt_value, '') FROM sqlite_master m, "
      "pragma_table_xinfo(m.name) x WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
      "SELECT 'index ' || m.name, m.tbl_name || ' ' || group_concat(x.name) || iif(max(l.\"unique\"), ', unique', '') "
      "FROM sqlite_master m JOIN pragma_index_list(m.tbl_name) l ON l.name = m.name, pragma_index_info(m.name) x "
      "WHERE m.type = 'index' AND m.sql IS NOT NULL GROUP BY m.name"};
  for (const char* query : queries) {
    TRY(Statement s, Statement::prepare(db, query));
    TRY_DO(s.each_row([&] { out[s.text(0)] = s.text(1); }));
  }
  return out;
}

std::vector<std::string> differences(const Structure& expected, const Structure& found) {
  std::vector<std::string> out;
  const auto table_is_missing = [&](const std::string& part, const Structure& in) {
    const std::size_t at = part.find(" of the table ");
    return part.starts_with(column_of) && at != part.npos && !in.contains(part.substr(at + 8));
  };
  for (const auto& [part, how] : expected) {
    const auto there = found.find(part);
    if (there == found.end() && !table_is_missing(part, found)) out.push_back(fmt::format("the {} is missing", part));
    if (there != found.end() && there->second != how)
      out.push_back(fmt::format("the {} is not as partita makes it: {} expected, {} found", part, how, there->second));
  }
  for (const auto& [part, how] : found)
    if (!expected.contains(part) && !table_is_missing(part, expected))
      out.push_back(fmt::format("the {} is not of partita", part));
  return out;
}

}  // namespace

Result<std::vector<std::string>> StoreFile::verify() {
  sqlite3* fresh = nullptr;
  const int opened = sqlite3_open(":memory:", &fresh);
  StoreFile example(Database(fresh), key_);
  if (opened != SQLITE_OK) return sqlite_error(fresh);
  TRY_DO(example.migrate());
  TRY(const Structure expected, structure(fresh));
  TRY(const Structure found, structure(db_.get()));
  std::vector<std::string> problems = differences(expected, found);
  const bool readable = problems.empty();
  if (!key_) problems.push_back(key_.error().line());
  {
    TRY(Statement s, Statement::prepare(db_.get(), "PRAGMA integrity_check"));
    TRY_DO(s.each_row([&] {
      if (s.text(0) != "ok") problems.push_back(s.text(0));
    }));
  }
  if (!readable) return problems;
  TRY(Statement s, Statement::prepare(db_.get(), "SELECT id, key, kind, object, signature FROM compiled"));
  TRY_DO(s.each_row([&] {
    if (!key_ || !same_signature(sign(*key_, {s.text(1), s.text(2), s.text(3)}), s.text(4)))
      problems.push_back(fmt::format("compiled/{}: the code was not signed by this user", s.integer(0)));
  }));
  return problems;
}

Status StoreFile::clear() {
  for (const Table& t : tables) TRY_DO(execute(db_.get(), fmt::format("DELETE FROM {}", t.rows)));
  return execute(db_.get(), "PRAGMA wal_checkpoint(TRUNCATE); VACUUM;");
}

Status StoreFile::export_to(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored))
    return input_error("store.export", "the file exists; give another name", Where{.file = file});
  TRY_DO(output_place(file));
  Status done = run(db_.get(), "VACUUM INTO ?", file);
  if (done) return done;
  std::filesystem::remove(file, ignored);  // the part that was written, as on a full disk
  done.error().where.file = file;
  return done;
}

}  // namespace partita
