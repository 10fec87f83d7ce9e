#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace partita {

/// The bytes of a file, shared by everything that was read from it and points into it.
class FileBytes {
 public:
  /// Read into memory and not mapped, so that another program may write or cut the file meanwhile. Errors file.missing,
  /// file.read: not there, a folder, not readable.
  static Result<std::shared_ptr<const FileBytes>> open(const std::string& path);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  std::string_view text() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  FileBytes() = default;
  std::string path_;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The first 4096 bytes, or fewer where the file is shorter: enough to tell its kind. Errors as FileBytes::open.
Result<std::string> read_head(const std::string& path);

/// Bytes that the content of a file may take in memory, all together: 64 times the file and 64 MiB. What is compressed
/// or laid out with gaps beyond that is refused before memory is taken.
constexpr std::uint64_t most_bytes_in_memory(std::uint64_t file_bytes) {
  return (file_bytes + (1 << 20)) * 64;
}

/// Writes beside the target and renames, so that a reader never sees half a file.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace partita
