#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/mapped_file.h"
#include "core/base/result.h"

namespace partita {

/// The bytes of a file, shared by everything that was read from it and points into it.
class FileBytes {
 public:
  /// Reads a small file into memory, and a large one where it cannot be a MappedFile; so another program may write or
  /// truncate it meanwhile. Errors: file.missing; file.read for a folder or an unreadable file.
  static Result<std::shared_ptr<const FileBytes>> open(const std::string& path);
  /// The bytes from this offset on, in memory; none when the file is shorter. Errors as open().
  static Result<std::shared_ptr<const FileBytes>> open_from(const std::string& path, std::size_t begin);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  std::string_view text() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  FileBytes() = default;
  static Result<std::shared_ptr<const FileBytes>> read(int file, std::size_t begin, std::size_t end,
                                                       const std::string& path);
  std::string path_;
  std::unique_ptr<MappedFile> mapped_;  ///< null: the bytes are in memory of their own
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Reads the first 4096 bytes, or all of a shorter file: enough to tell its kind. Errors as FileBytes::open.
Result<std::string> read_head(const std::string& path);

/// The memory that a file's content may take: 64 times the file's size plus 64 MiB. Compressed data and layouts with
/// gaps beyond that are refused before memory is allocated.
constexpr std::uint64_t most_bytes_in_memory(std::uint64_t file_bytes) {
  return (file_bytes + (1 << 20)) * 64;
}

}  // namespace partita
