#include "core/aot/stored_constants.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace partita {
namespace {

/// Bytes of the constants of one entry that compiling made.
constexpr std::size_t most_bytes = std::size_t{16} << 20;

bool same_memory(const Tensor& a, const Tensor& b) {
  return a.storage == b.storage && a.dtype == b.dtype && a.offset == b.offset && a.sizes == b.sizes &&
         a.strides == b.strides;
}

}  // namespace

Result<StoredConstants> store_constants(const std::map<std::string, Tensor>& needed,
                                        const std::map<std::string, Tensor>& given) {
  StoredConstants out;
  std::size_t total = 0;
  for (const auto& [name, tensor] : needed) {
    auto same = given.find(name);
    if (same == given.end() || !same_memory(tensor, same->second))
      same = std::ranges::find_if(given, [&](const auto& other) { return same_memory(tensor, other.second); });
    if (same != given.end()) {
      out.given.emplace(name, same->first);
      continue;
    }
    TRY(const std::int64_t elements, reach(tensor.sizes, tensor.strides));
    const std::size_t bytes = static_cast<std::size_t>(elements) * itemsize(tensor.dtype);
    total += bytes;
    if (total > most_bytes)
      return unsupported("cache.constants", fmt::format("constants of {} bytes and more were made", total));
    out.made.emplace(
        name, StoredConstants::Made{
                  tensor.dtype, tensor.sizes, tensor.strides, {reinterpret_cast<const char*>(tensor.data()), bytes}});
  }
  return out;
}

std::optional<std::map<std::string, Tensor>> constants_of(const StoredConstants& stored,
                                                          const std::map<std::string, Tensor>& given) {
  std::map<std::string, Tensor> out;
  for (const auto& [name, other] : stored.given) {
    const auto found = given.find(other);
    if (found == given.end()) return std::nullopt;
    out.emplace(name, found->second);
  }
  for (const auto& [name, made] : stored.made) {
    const auto elements = reach(made.sizes, made.strides);
    if (made.sizes.size() != made.strides.size() || !elements ||
        static_cast<std::size_t>(*elements) * itemsize(made.dtype) != made.bytes.size())
      return std::nullopt;
    auto tensor = Tensor::empty_strided(made.dtype, made.sizes, made.strides);
    if (!tensor) return std::nullopt;
    if (!made.bytes.empty()) std::memcpy(tensor->data(), made.bytes.data(), made.bytes.size());
    out.emplace(name, *std::move(tensor));
  }
  return out;
}

}  // namespace partita
