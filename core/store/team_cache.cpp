#include "core/store/team_cache.h"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "core/base/archive.h"
#include "core/store/redis.h"

namespace partita {
namespace {

const std::string prefix = "partita:";

/// A signature holds for one entry of this format under one key of the cache.
std::string signature(const SigningKey& key, const std::string& hash, const CompiledObject& object) {
  return sign(key, {"partita team entry 1", hash, object.kind, object.graph_name, object.bytes});
}

struct TeamEntry {
  std::string signature;
  CompiledObject object;
};
void fields(auto& a, TeamEntry& e) {
  a(e.signature, e.object.kind, e.object.graph_name, e.object.bytes);
}

void warn(const Diagnostic& what) {
  std::fprintf(stderr, "partita: warning: %s\n", what.line().c_str());
}

}  // namespace

std::unique_ptr<TeamCache> TeamCache::configured() {
  if (config().team_cache.empty()) return nullptr;
  const auto key = team_key(config().team_key);
  if (!key) {
    warn(key.error());
    return nullptr;
  }
  return std::unique_ptr<TeamCache>(new TeamCache(config().team_cache, config().team_seconds, *key));
}

TeamCache::TeamCache(std::string address, double seconds, SigningKey key)
    : address_(std::move(address)), seconds_(seconds), key_(key) {}

TeamCache::~TeamCache() = default;

std::optional<std::string> TeamCache::ask(const std::vector<std::string_view>& command) {
  if (failed_) return std::nullopt;
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds_));
  auto answer = [&]() -> Result<std::optional<std::string>> {
    if (!connection_ || process_ != ::getpid()) {
      TRY(connection_, RedisConnection::open(address_, deadline));
      process_ = ::getpid();
    }
    return connection_->ask(command, deadline);
  }();
  if (answer) return *std::move(answer);
  warn(input_error(
      answer.error().code,
      fmt::format("the team's server fails ({}); going on without the team's cache", answer.error().message),
      Where{.file = address_}));
  failed_ = true;
  connection_.reset();
  return std::nullopt;
}

std::optional<CompiledObject> TeamCache::find(const CacheKey& key) {
  const std::string hash = key.hash();
  const auto bytes = ask({"GET", prefix + hash});
  if (!bytes) return std::nullopt;
  auto entry = from_bytes<TeamEntry>("", *bytes);
  if (entry && same_signature(entry->signature, signature(key_, hash, entry->object))) return std::move(entry->object);
  if (!std::exchange(told_unsigned_, true))
    warn(input_error("team.signature",
                     fmt::format("{}{} is not signed with the team's key; it is not loaded", prefix, hash),
                     Where{.file = address_}));
  return std::nullopt;
}

void TeamCache::put(const CacheKey& key, const CompiledObject& object) {
  const std::string hash = key.hash();
  const auto entry = to_bytes("", TeamEntry{signature(key_, hash, object), object});
  ask({"SET", prefix + hash, *entry});
}

}  // namespace partita
