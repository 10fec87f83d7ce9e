#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace partita {

/// The bytes of a file. Shared by everything that was read from it and still points into it.
class FileBytes {
 public:
  /// In memory, so that they stay what they were when a program writes the file anew. Errors file.missing, file.read:
  /// not there, a folder, not readable.
  static Result<std::shared_ptr<const FileBytes>> open(const std::string& path);
  /// Mapped: for short use of large files. The process dies if another cuts the file short meanwhile.
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

/// Writes beside the target and renames, so that a reader never sees half a file.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace partita
