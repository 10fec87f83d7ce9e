#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace partita {

/// The bytes of a file, shared by everything that was read from it and points into it.
class FileBytes {
 public:
  /// Copies the file into memory, so that the bytes stay the same when another program rewrites the file. Errors:
  /// file.missing; file.read for a folder or an unreadable file.
  static Result<std::shared_ptr<const FileBytes>> open(const std::string& path);
  /// Maps the file, for short use of large files. The process dies if another program truncates the file meanwhile.
  static Result<std::shared_ptr<const FileBytes>> map(const std::string& path);
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
  bool mapped_ = false;
};

/// Writes a temporary file beside the target and renames it, so that a reader never sees half a file.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace partita
