#pragma once
#include <memory>
#include <optional>
#include <string>

#include "core/base/scratch.h"
#include "core/store/store.h"

namespace partita {

class TeamCache;

/// The user's store, for compiled code and for records of work, and behind it the team's cache of code. All works
/// without it: at the first failure it prints one line to stderr, and from then on it keeps and finds nothing.
class CodeStore {
 public:
  CodeStore();
  ~CodeStore();

  /// The bytes kept under a key, here or in the team's cache.
  std::optional<std::string> find(const std::string& key);
  /// `kind`: what the bytes are. Returns whether the store keeps them.
  bool put(const std::string& key, const std::string& code, const std::string& graph_name,
           const std::string& kind = "elf");
  void add(RunRow row);  ///< under its stored_path(), as the next
  void add(CheckRow row);
  void add(const SnapshotRow& row);
  /// The answers of tries of a minification.
  std::optional<std::string> find_try(const std::string& session, std::uint64_t candidate);
  void add_try(const std::string& session, std::uint64_t candidate, const std::string& answer);
  void forget_tries(const std::string& session);

 private:
  bool check(Status done);
  void give_up(const Diagnostic& why);
  std::optional<ScratchFolder> fresh_;  ///< with `fresh_cache`: holds an empty store in place of the user's
  std::optional<StoreFile> store_;
  std::unique_ptr<TeamCache> team_;  ///< null: none
};

}  // namespace partita
