#include "core/store/sqlite.h"

#include <fmt/format.h>

namespace partita {

Diagnostic sqlite_error(sqlite3* db) {
  const char* name = sqlite3_db_filename(db, "main");
  const Where where{.file = name ? name : ""};
  switch (sqlite3_errcode(db) & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return input_error(
          "store.corrupt",
          fmt::format("the store is damaged ({}); delete it to start with an empty one", sqlite3_errmsg(db)), where);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_IOERR:
      return input_error(
          "store.read_only",
          fmt::format("the store cannot be written ({}); set PARTITA_STORE to a folder that can", sqlite3_errmsg(db)),
          where);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return input_error("store.busy", "the store is locked by another process; try again", where);
    case SQLITE_FULL:
      return input_error("store.full", "no space is left for the store; free some or run partita store clear", where);
    default:
      return input_error("store.sqlite", fmt::format("the store failed: {}", sqlite3_errmsg(db)), where);
  }
}

Status execute(sqlite3* db, const std::string& sql) {
  if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return sqlite_error(db);
  return {};
}

Result<std::int64_t> number(sqlite3* db, std::string_view sql) {
  TRY(Statement s, Statement::prepare(db, sql));
  TRY(const bool row, s.step());
  return row ? s.integer(0) : 0;
}

Result<Statement> Statement::prepare(sqlite3* db, std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &raw, nullptr) != SQLITE_OK)
    return sqlite_error(db);
  Statement s;
  s.statement_.reset(raw);
  return s;
}

void Statement::bind(int i, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), i, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void Statement::bind(int i, Blob blob) {
  sqlite3_bind_blob64(statement_.get(), i, blob.bytes.empty() ? "" : blob.bytes.data(), blob.bytes.size(),
                      SQLITE_STATIC);
}

Result<bool> Statement::step() {
  switch (sqlite3_step(statement_.get())) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      return sqlite_error(sqlite3_db_handle(statement_.get()));
  }
}

std::string Statement::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  return bytes ? std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column)))
               : std::string();
}

}  // namespace partita
