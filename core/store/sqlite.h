#pragma once
// The part of SQLite that the store needs: a connection, a prepared statement, errors as diagnostics.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include "core/base/result.h"

namespace partita {

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

/// The last error as store.corrupt, store.read_only, store.busy, store.full or store.sqlite, naming the file.
Diagnostic sqlite_error(sqlite3* db);
/// Runs statements without results, separated by ';'.
Status execute(sqlite3* db, const std::string& sql);
/// The number that a query gives; 0 when it gives no row.
Result<std::int64_t> number(sqlite3* db, std::string_view sql);

struct Blob {
  std::string_view bytes;
};

/// A prepared statement; parameters count from 1, columns from 0.
class Statement {
 public:
  /// Errors: store.corrupt, store.busy, store.sqlite and the like.
  static Result<Statement> prepare(sqlite3* db, std::string_view sql);

  void bind(int i, std::int64_t value) { sqlite3_bind_int64(statement_.get(), i, value); }
  void bind(int i, double value) { sqlite3_bind_double(statement_.get(), i, value); }
  /// The bytes of texts and blobs must live until the last step.
  void bind(int i, std::string_view text);
  void bind(int i, Blob blob);

  /// Returns true while there is a row.
  Result<bool> step();
  /// Calls f at each row.
  Status each_row(const auto& f) {
    for (;;) {
      TRY(const bool row, step());
      if (!row) return {};
      f();
    }
  }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  double real(int column) const { return sqlite3_column_double(statement_.get(), column); }
  std::string text(int column) const;  ///< for text and blobs

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// Prepares a statement with these parameters.
template <class... T>
Result<Statement> prepared(sqlite3* db, std::string_view sql, const T&... parameters) {
  TRY(Statement s, Statement::prepare(db, sql));
  int i = 0;
  (s.bind(++i, parameters), ...);
  return s;
}

/// Runs a statement that gives no rows.
template <class... T>
Status run(sqlite3* db, std::string_view sql, const T&... parameters) {
  TRY(Statement s, prepared(db, sql, parameters...));
  return s.each_row([] {});
}

}  // namespace partita
