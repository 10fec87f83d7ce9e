#pragma once
// A Redis server, asked within a time limit. The one place that knows hiredis.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/descriptor.h"
#include "core/base/result.h"

struct redisReader;

namespace partita {

/// A connection that never waits longer than its caller allows, whatever the server does: hiredis's own one sets limits
/// for single system calls, and dies with SIGPIPE when the server goes.
class RedisConnection {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// `address`: HOST:PORT, or the path of a unix socket. Errors team.address, team.server, whose message is the reason
  /// alone.
  static Result<std::unique_ptr<RedisConnection>> open(const std::string& address, Deadline deadline);
  ~RedisConnection();

  /// The answer to a command: a string, or nullopt for Redis's nil. Error team.server: no answer in time, the
  /// connection is lost, or the server's own error. After an error the connection must not be used.
  Result<std::optional<std::string>> ask(const std::vector<std::string_view>& command, Deadline deadline);

 private:
  explicit RedisConnection(Descriptor socket);
  Descriptor socket_;
  std::unique_ptr<redisReader, void (*)(redisReader*)> reader_;
};

}  // namespace partita
