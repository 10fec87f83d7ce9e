// The store's SQLite file: opened, listed, shown, verified, written and cleared. An input without bytes is replaced by
// a store with rows.
#include "core/store/store.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/check.h"

using namespace partita;
namespace fs = std::filesystem;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

/// A folder of this process in memory, with the key of a user.
const fs::path& folder() {
  static const fs::path made = [] {
    std::string name = "/dev/shm/partita-fuzz-XXXXXX";
    CHECK(::mkdtemp(name.data()) != nullptr);
    ::setenv("HOME", name.c_str(), 1);
    ::unsetenv("XDG_CONFIG_HOME");
    std::atexit([] {
      std::error_code ignored;
      fs::remove_all(folder(), ignored);
    });
    return fs::path(name);
  }();
  return made;
}

std::string fresh_file() {
  const std::string file = (folder() / "store.sqlite").string();
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    std::error_code ignored;
    fs::remove(file + suffix, ignored);
  }
  return file;
}

const CacheKey key{.graph = "graph", .options = "options", .cpu_features = "avx2", .version = "1"};

void add_rows(StoreFile& store) {
  (void)store.put_compiled(key, {.bytes = "code", .graph_name = "joint", .kind = "elf"});
  (void)store.add_run({"a.py", "joint", "cpu", "", 1.5, "ok"});
  (void)store.add_check({"a.py", "joint", "compare", true, "{}"});
  (void)store.add_snapshot({"joint", "remove_dead", "text"});
  (void)store.add_try("session", 1, "fails");
}

/// The bytes of a store with a row in each table, with the smallest pages.
const std::string& sample() {
  static const std::string bytes = [] {
    const std::string file = fresh_file();
    {
      sqlite3* raw = nullptr;
      CHECK(sqlite3_open(file.c_str(), &raw) == SQLITE_OK);
      const Database db(raw);
      CHECK(execute(raw, "PRAGMA page_size=512; VACUUM"));
    }
    {
      auto store = StoreFile::open(file);
      CHECK(store);
      add_rows(*store);
    }
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string file = fresh_file();
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  auto store = StoreFile::open(file);
  if (!store) return 0;
  (void)store->stats();
  (void)store->runs(10);
  (void)store->checks(10);
  if (auto rows = store->list())
    for (const StoreEntry& row : *rows) (void)store->show(row.table + "/" + std::to_string(row.id));
  (void)store->verify();
  (void)store->find_compiled(key);
  (void)store->find_try("session", 1);
  add_rows(*store);
  (void)store->forget_tries("session");
  (void)store->clear();
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned) {
  if (size < 100 && sample().size() <= max_size) {
    std::memcpy(data, sample().data(), sample().size());
    return sample().size();
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
