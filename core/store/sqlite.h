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

/// A prepared statement; parameters count from 1, columns from 0.
class Statement {
 public:
  static Result<Statement> prepare(sqlite3* db, std::string_view sql);

  void bind(int i, std::int64_t value) { sqlite3_bind_int64(statement_.get(), i, value); }
  void bind(int i, double value) { sqlite3_bind_double(statement_.get(), i, value); }
  /// The bytes must live until the last step.
  void bind_text(int i, std::string_view text);
  void bind_blob(int i, std::string_view bytes);

  /// Returns true while there is a row.
  Result<bool> step();
  Status run();  ///< runs all steps
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  double real(int column) const { return sqlite3_column_double(statement_.get(), column); }
  std::string text(int column) const;  ///< for text and blobs

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

}  // namespace partita
