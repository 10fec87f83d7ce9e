#include "core/store/team_cache.h"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "core/base/packed.h"
#include "core/store/redis.h"

namespace partita {
namespace {

const std::string prefix = "partita:";

/// A signature holds for one entry of this format under one key of the cache.
std::string signature(const SigningKey& key, const std::string& hash, const CompiledObject& object) {
  return sign(key, {"partita team entry 1", hash, object.kind, object.graph_name, object.bytes});
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
  const auto entry = ask({"GET", prefix + hash});
  if (!entry) return std::nullopt;
  Unpacker in(*entry);
  const std::string signed_as = in.text();
  CompiledObject object;
  for (std::string* part : {&object.kind, &object.graph_name, &object.bytes}) *part = in.text();
  if (in.ok() && same_signature(signed_as, signature(key_, hash, object))) return object;
  if (!std::exchange(told_unsigned_, true))
    warn(input_error("team.signature",
                     fmt::format("{}{} is not signed with the team's key; it is not loaded", prefix, hash),
                     Where{.file = address_}));
  return std::nullopt;
}

void TeamCache::put(const CacheKey& key, const CompiledObject& object) {
  const std::string hash = key.hash();
  Packer entry;
  entry.put(signature(key_, hash, object));
  for (const std::string* part : {&object.kind, &object.graph_name, &object.bytes}) entry.put(*part);
  ask({"SET", prefix + hash, entry.take()});
}

}  // namespace partita
