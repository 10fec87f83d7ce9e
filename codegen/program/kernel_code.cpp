#include "codegen/program/kernel_code.h"

#include <cstdint>
#include <cstring>

namespace partita::codegen {

std::string pack(std::span<const std::string> objects) {
  std::string bytes = "PTOB";
  auto put = [&](std::uint64_t n) { bytes.append(reinterpret_cast<const char*>(&n), sizeof n); };
  put(objects.size());
  for (const std::string& o : objects) {
    put(o.size());
    bytes += o;
  }
  return bytes;
}

Result<std::vector<std::string>> unpack(std::string_view bytes) {
  auto damaged = [] { return input_error("codegen.object", "stored machine code is damaged"); };
  auto take = [&](std::uint64_t& n) {
    if (bytes.size() < sizeof n) return false;
    std::memcpy(&n, bytes.data(), sizeof n);
    bytes.remove_prefix(sizeof n);
    return true;
  };
  if (!bytes.starts_with("PTOB")) return damaged();
  bytes.remove_prefix(4);
  std::uint64_t count = 0;
  if (!take(count)) return damaged();
  std::vector<std::string> objects;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t size = 0;
    if (!take(size) || size > bytes.size()) return damaged();
    objects.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  if (!bytes.empty()) return damaged();
  return objects;
}

std::string kernel_symbol(std::size_t index) {
  return "partita_kernel_" + std::to_string(index);
}

}  // namespace partita::codegen
