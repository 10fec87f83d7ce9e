#include "core/store/code_store.h"

#include <cstdio>

#include "core/store/team_cache.h"

namespace partita {
namespace {

/// The store's key for compiled code. `key` already names graph, options and machine.
CacheKey address(const std::string& key) {
  return {.graph = key, .options = {}, .cpu_features = {}, .version = PARTITA_VERSION};
}

}  // namespace

CodeStore::~CodeStore() = default;

CodeStore::CodeStore() : team_(TeamCache::configured()) {
  std::string file = StoreFile::default_file();
  if (config().fresh_cache) {
    auto folder = ScratchFolder::make("cache");
    if (!folder) {
      give_up(folder.error());
      return;
    }
    fresh_.emplace(*std::move(folder));
    file = fresh_->path() + "/store.sqlite";
  }
  auto opened = StoreFile::open(file);
  if (!opened) {
    give_up(opened.error());
    return;
  }
  store_ = *std::move(opened);
  if (const Diagnostic* why = store_->code_refused())
    std::fprintf(stderr, "partita: warning: %s\n", why->line().c_str());
}

std::optional<std::string> CodeStore::find(const std::string& key) {
  if (store_) {
    auto found = store_->find_compiled(address(key));
    if (!found)
      give_up(found.error());
    else if (*found)
      return std::move((*found)->bytes);
    if (store_ && std::exchange(store_->damaged, 0) > 0)
      std::fprintf(stderr, "partita: warning: an entry of the store was damaged and is dropped; it is made again\n");
  }
  auto shared = team_ ? team_->find(address(key)) : std::nullopt;
  if (!shared) return std::nullopt;
  if (store_) check(store_->put_compiled(address(key), *shared));
  return std::move(shared->bytes);
}

bool CodeStore::put(const std::string& key, const std::string& code, const std::string& graph_name,
                    const std::string& kind) {
  const CompiledObject object{code, graph_name, kind};
  if (team_) team_->put(address(key), object);
  if (!store_ || store_->code_refused() || static_cast<std::int64_t>(code.size()) > store_->limit_bytes) return false;
  return check(store_->put_compiled(address(key), object));
}
void CodeStore::add(RunRow row) {
  row.path = stored_path(row.path);
  if (store_) check(store_->add_run(row));
}
void CodeStore::add(CheckRow row) {
  row.path = stored_path(row.path);
  if (store_) check(store_->add_check(row));
}
void CodeStore::add(const SnapshotRow& row) {
  if (store_) check(store_->add_snapshot(row));
}

std::optional<std::string> CodeStore::find_try(const std::string& session, std::uint64_t candidate) {
  if (!store_) return std::nullopt;
  auto found = store_->find_try(session, candidate);
  if (found) return *std::move(found);
  give_up(found.error());
  return std::nullopt;
}
void CodeStore::add_try(const std::string& session, std::uint64_t candidate, const std::string& answer) {
  if (store_) check(store_->add_try(session, candidate, answer));
}
void CodeStore::forget_tries(const std::string& session) {
  if (store_) check(store_->forget_tries(session));
}

bool CodeStore::check(Status done) {
  if (!done) give_up(done.error());
  return static_cast<bool>(done);
}

void CodeStore::give_up(const Diagnostic& why) {
  std::fprintf(stderr, "partita: warning: %s; going on without the store\n", why.line().c_str());
  store_.reset();
}

}  // namespace partita
