#pragma once
// The bytes of a fuzzer as a file, for loaders that open a path.
#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "core/base/check.h"

namespace partita::fuzz {

/// A file in memory that lives as long as this.
class InputFile {
 public:
  InputFile(const std::uint8_t* bytes, std::size_t size) : fd_(::memfd_create("input", MFD_CLOEXEC)) {
    CHECK(fd_ >= 0 && ::write(fd_, bytes, size) == static_cast<ssize_t>(size));
  }
  ~InputFile() { ::close(fd_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace partita::fuzz
