#include "core/tensor/shared_values.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/packed.h"

namespace partita {
namespace {

Diagnostic no_memory(const char* what) {
  return input_error("memory.shared",
                     fmt::format("no memory to share with another process: {}: {}", what, std::strerror(errno)));
}

Diagnostic unreadable() {
  return {Fault::Internal, "process.message", "a message of another process cannot be read"};
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
constexpr std::size_t no_storage = static_cast<std::size_t>(-1);

void put(Packer& out, const Value& value, Storages& known) {
  out.put(value.v.index());
  if (const auto* list = value.get<ValueList>()) {
    out.put(list->size());
    for (const Value& item : *list) put(out, item, known);
  } else if (const auto* t = value.get<Tensor>()) {
    std::size_t number = no_storage;
    if (t->storage) {
      number = static_cast<std::size_t>(std::ranges::find(known, t->storage) - known.begin());
      if (number == known.size()) known.push_back(t->storage);
    }
    out.put(number);
    out.put(t->dtype);
    out.put(t->sizes);
    out.put(t->strides);
    out.put(t->offset);
    out.put(t->requires_grad);
  } else if (const auto* s = value.get<std::string>()) {
    out.put(std::string_view(*s));
  } else {
    std::visit(
        [&](const auto& plain) {
          if constexpr (std::is_trivially_copyable_v<std::decay_t<decltype(plain)>>) out.put(plain);
        },
        value.v);
  }
}

template <std::size_t index = 0>
Value plain_value(Unpacker& in, std::size_t wanted) {
  if constexpr (index < std::variant_size_v<decltype(Value::v)>) {
    using T = std::variant_alternative_t<index, decltype(Value::v)>;
    if constexpr (std::is_trivially_copyable_v<T>)
      if (index == wanted) return Value(in.get<T>());
    return plain_value<index + 1>(in, wanted);
  }
  return Value();
}

Result<Value> get(Unpacker& in, const Storages& known) {
  const auto index = in.get<std::size_t>();
  if (index == Value(ValueList()).v.index()) {
    ValueList list;
    for (std::size_t n = in.count(); n > 0; --n) {
      TRY(Value item, get(in, known));
      list.push_back(std::move(item));
    }
    return Value(std::move(list));
  }
  if (index == Value(std::string()).v.index()) return Value(in.text());
  if (index != Value(Tensor()).v.index()) return plain_value(in, index);
  Tensor t;
  const auto number = in.get<std::size_t>();
  t.dtype = in.get<DType>();
  t.sizes = in.list<std::int64_t>();
  t.strides = in.list<std::int64_t>();
  t.offset = in.get<std::int64_t>();
  t.requires_grad = in.get<bool>();
  if (!in.ok() || (number != no_storage && number >= known.size())) return unreadable();
  if (number != no_storage) t.storage = known[number];
  return Value(std::move(t));
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
    if (n > most_bytes || (all += aligned(n)) > most_bytes) return unreadable();
  }
  struct stat status{};
  if (all > 0 && (::fstat(file, &status) != 0 || static_cast<std::size_t>(status.st_size) < all)) return unreadable();
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
  Packer body, out;
  for (const Value& v : values) put(body, v, known);
  const std::span<const std::shared_ptr<Storage>> added = std::span(known).subspan(first);
  out.put(added.size());
  for (const auto& storage : added) out.put(storage->bytes());
  out.put(values.size());
  SharedValues shared;
  shared.text = out.take() + body.take();
  TRY(shared.memory, copy_storages(added));
  return shared;
}

Result<std::vector<Value>> shared_values(const SharedValues& from, Storages& known) {
  Unpacker in(from.text);
  TRY(const Storages added, map_storages(from.memory.get(), in.list<std::size_t>()));
  known.insert(known.end(), added.begin(), added.end());
  std::vector<Value> values;
  for (std::size_t n = in.count(); n > 0; --n) {
    TRY(Value value, get(in, known));
    values.push_back(std::move(value));
  }
  if (!in.ok()) return unreadable();
  return values;
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
