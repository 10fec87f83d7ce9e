#pragma once
// Reads zip archives as torch.save and torch.export write them. Internal to core/load.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/tensor.h"

struct zip;

namespace partita {

/// A zip archive in memory. Names come from the central directory; absolute names and names with ".." are refused.
class ZipArchive {
 public:
  /// `owner` keeps the bytes alive. Errors load.zip.
  static Result<ZipArchive> open(std::string_view bytes, std::shared_ptr<const void> owner);

  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const { return index_.contains(name); }
  /// The entry's bytes, checked against the directory's size and CRC. Error load.zip when it is absent or damaged.
  Result<std::string> read(const std::string& name) const;
  /// The same without a copy, if the entry is stored uncompressed at a multiple of 64 bytes, as torch writes it.
  Result<std::shared_ptr<Storage>> read_storage(const std::string& name) const;
  /// The folder that holds all entries, as torch writes it ("program"); empty when there is none.
  std::string root() const;

 private:
  /// Subtracts the size from the budget, because an archive may name the same bytes many times.
  Result<std::uint64_t> checked_size(const std::string& name) const;
  Status fill(const std::string& name, char* to, std::uint64_t size) const;
  /// The bytes of an uncompressed entry in the archive. Nullopt if it is none, or where they are is not understood.
  std::optional<std::string_view> stored(std::uint64_t index) const;

  std::shared_ptr<zip> archive_;
  std::shared_ptr<const void> owner_;
  std::string_view bytes_;
  std::vector<std::uint64_t> local_headers_;  ///< where each entry begins; empty if the directory is not understood
  std::shared_ptr<std::uint64_t> budget_;     ///< bytes that may still be read, shared by copies
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint64_t> index_;
};

}  // namespace partita
