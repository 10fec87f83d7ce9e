#pragma once
#include <memory>
#include <optional>
#include <string>

#include "core/store/store.h"

namespace partita {

/// The store as compiled code and records of work are kept in it. Nothing depends on it: at the first failure it says
/// so in one line on stderr and stays silent and empty from then on.
class CodeStore {
 public:
  CodeStore();

  std::optional<std::string> find(const std::string& key);
  void put(const std::string& key, const std::string& code, const std::string& graph_name);
  void add(const RunRow& row);
  void add(const CheckRow& row);
  void add(const SnapshotRow& row);
  /// A minification's answers.
  std::optional<std::string> find_try(const std::string& session, std::uint64_t candidate);
  void add_try(const std::string& session, std::uint64_t candidate, const std::string& answer);
  void forget_tries(const std::string& session);

 private:
  void check(Status done);
  void give_up(const Diagnostic& why);
  std::optional<Store> store_;
};

/// One row into the store of that file; nothing where it is empty. For who keeps no store open.
Status keep_in_store(const std::string& file, const CheckRow& row);
Status keep_in_store(const std::string& file, const RunRow& row);

}  // namespace partita
