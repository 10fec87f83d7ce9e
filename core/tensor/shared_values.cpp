#include "core/tensor/shared_values.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/archive.h"
#include "core/tensor/archive_types.h"

namespace partita {

/// A tensor, with its storage as a number: the place among the Storages that are the archive's context.
template <class A>
void fields(A& a, Tensor& t) {
  Storages& known = *static_cast<Storages*>(a.context);
  std::optional<std::size_t> number;
  if (!A::reads && t.storage) {
    number = static_cast<std::size_t>(std::ranges::find(known, t.storage) - known.begin());
    if (*number == known.size()) known.push_back(t.storage);
  }
  a(number, t.dtype, t.sizes, t.strides, t.offset, t.requires_grad);
  if constexpr (A::reads) {
    if (number && *number >= known.size()) return a.fail();
    if (number) t.storage = known[*number];
  }
}
void fields(auto& a, Value& value) {
  variant(a, value.v);
}

namespace {

Diagnostic no_memory(const char* what) {
  return input_error("memory.shared",
                     fmt::format("no memory to share with another process: {}: {}", what, std::strerror(errno)));
}

/// Memory that is unmapped with its owner.
struct Mapping {
  void* address = nullptr;
  std::size_t bytes = 0;
  ~Mapping() {
    if (address) ::munmap(address, bytes);
  }
};

Result<std::shared_ptr<Mapping>> map(int fd, std::size_t bytes) {
  auto mapping = std::make_shared<Mapping>();
  if (bytes == 0) return mapping;
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return no_memory("mmap");
  mapping->address = address;
  mapping->bytes = bytes;
  return mapping;
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + Storage::alignment - 1) / Storage::alignment * Storage::alignment;
}

constexpr std::size_t most_bytes = std::size_t{1} << 62;

/// The text of SharedValues.
struct SharedText {
  std::vector<std::size_t> storages;  ///< the bytes of each new one
  std::string values;                 ///< in an archive whose context are the Storages
};
void fields(auto& a, SharedText& t) {
  a(t.storages, t.values);
}

}  // namespace

Result<Descriptor> copy_storages(std::span<const std::shared_ptr<Storage>> storages) {
  std::size_t bytes = 0, at = 0;
  for (const auto& storage : storages) {
    TRY_DO(reachable(storage->device()));
    bytes += aligned(storage->bytes());
  }
  Descriptor file(::memfd_create("partita-values", MFD_CLOEXEC));
  if (file.get() < 0) return no_memory("memfd_create");
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return no_memory("ftruncate");
  TRY(const auto mapping, map(file.get(), bytes));
  for (const auto& storage : storages) {
    if (storage->bytes() > 0)
      std::memcpy(static_cast<std::byte*>(mapping->address) + at, storage->data(), storage->bytes());
    at += aligned(storage->bytes());
  }
  return file;
}

Result<Storages> map_storages(int file, std::span<const std::size_t> bytes) {
  std::size_t all = 0, at = 0;
  for (const std::size_t n : bytes) {
    if (n > most_bytes || (all += aligned(n)) > most_bytes) return unreadable_message();
  }
  struct stat status{};
  if (all > 0 && (::fstat(file, &status) != 0 || static_cast<std::size_t>(status.st_size) < all))
    return unreadable_message();
  TRY(const auto mapping, map(file, all));
  Storages storages;
  for (const std::size_t n : bytes) {
    auto* begin = n > 0 ? static_cast<std::byte*>(mapping->address) + at : nullptr;
    storages.push_back(Storage::borrow(begin, n, mapping));
    at += aligned(n);
  }
  return storages;
}

Result<SharedValues> share_values(const std::vector<Value>& values, Storages& known) {
  const std::size_t first = known.size();
  SharedText text;
  TRY(text.values, to_bytes("", values, &known));
  const std::span<const std::shared_ptr<Storage>> added = std::span(known).subspan(first);
  for (const auto& storage : added) text.storages.push_back(storage->bytes());
  SharedValues shared;
  TRY(shared.text, to_bytes("", std::move(text)));
  TRY(shared.memory, copy_storages(added));
  return shared;
}

Result<std::vector<Value>> shared_values(const SharedValues& from, Storages& known) {
  TRY(const SharedText text, read_message<SharedText>("", from.text));
  TRY(const Storages added, map_storages(from.memory.get(), text.storages));
  known.insert(known.end(), added.begin(), added.end());
  return read_message<std::vector<Value>>("", text.values, &known);
}

Status take_back(const SharedValues& shared, const Storages& known) {
  std::size_t bytes = 0, at = 0;
  for (const auto& storage : known) bytes += aligned(storage->bytes());
  TRY(const auto mapping, map(shared.memory.get(), bytes));
  for (const auto& storage : known) {
    const std::byte* from = static_cast<std::byte*>(mapping->address) + at;
    // What is equal is not written: it may be a file's memory, which cannot be.
    if (storage->bytes() > 0 && std::memcmp(storage->data(), from, storage->bytes()) != 0)
      std::memcpy(storage->data(), from, storage->bytes());
    at += aligned(storage->bytes());
  }
  return {};
}

}  // namespace partita
