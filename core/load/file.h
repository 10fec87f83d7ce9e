#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace partita {

/// The bytes of a file, mapped. Shared by everything that was read from it and still points into it.
class FileBytes {
 public:
  /// Error file.missing, file.read: not there, a folder, not readable.
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

/// Writes beside the target and renames, so that a reader never sees half a file.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace partita
