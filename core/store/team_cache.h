#pragma once
// Compiled code that a team's machines share, on a Redis server (the configuration's team_cache, team_key and
// team_seconds). The server is not trusted: every entry is signed with the team's key.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/store/store.h"

namespace partita {

class RedisConnection;

/// The team's cache, behind the user's own store. All works without it: when the server cannot be reached, or does not
/// answer in time, that is told in one line on stderr, and from then on nothing is asked and nothing is sent. So a
/// process waits in vain at most once. Not thread-safe.
class TeamCache {
 public:
  /// Reads the configuration and the key; the server is asked at the first use. Null when there is no team, and, with a
  /// line on stderr, when its key is missing or can be read by others.
  static std::unique_ptr<TeamCache> configured();
  ~TeamCache();

  /// What another machine stored. An entry that is damaged or is not signed with the team's key for this very `key` is
  /// not there; the first one is told.
  std::optional<CompiledObject> find(const CacheKey& key);
  void put(const CacheKey& key, const CompiledObject& object);

 private:
  TeamCache(std::string address, double seconds, SigningKey key);
  /// The server's answer; nullopt for nil, and when there is no server any more.
  std::optional<std::string> ask(const std::vector<std::string_view>& command);

  std::string address_;
  double seconds_;
  SigningKey key_;
  std::unique_ptr<RedisConnection> connection_;
  int process_ = 0;  ///< whose connection it is: a fork cannot share it
  bool failed_ = false, told_unsigned_ = false;
};

}  // namespace partita
