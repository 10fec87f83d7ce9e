#pragma once
#include <memory>
#include <optional>
#include <string>

#include "core/store/store.h"

namespace partita {

/// A store of compiled code and records of work that may fail. Nothing depends on it: the first failure is reported in
/// one line on stderr, and from then on it is silent and empty.
class CodeStore {
 public:
  CodeStore();

  std::optional<std::string> find(const std::string& key);
  void put(const std::string& key, const std::string& code, const std::string& graph_name);
  void add(const RunRow& row);
  void add(const CheckRow& row);
  void add(const SnapshotRow& row);
  /// Answers of a minification.
  std::optional<std::string> find_try(const std::string& session, std::uint64_t candidate);
  void add_try(const std::string& session, std::uint64_t candidate, const std::string& answer);
  void forget_tries(const std::string& session);

 private:
  void check(Status done);
  void give_up(const Diagnostic& why);
  std::optional<Store> store_;
};

/// Adds one row to the store in that file; does nothing if `file` is empty. For callers that keep no store open.
Status keep_in_store(const std::string& file, const CheckRow& row);
Status keep_in_store(const std::string& file, const RunRow& row);

}  // namespace partita
