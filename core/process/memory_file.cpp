#include "core/process/memory_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

namespace partita {

Result<MemoryFile> MemoryFile::make(std::size_t most_bytes) {
  MemoryFile out;
  out.file_ = Descriptor(::memfd_create("partita-output", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // Only the pages that are written take memory.
  if (out.fd() < 0 || ::ftruncate(out.fd(), static_cast<off_t>(most_bytes)) != 0 ||
      ::fcntl(out.fd(), F_ADD_SEALS, F_SEAL_GROW) != 0)
    return input_error("process.start", fmt::format("no memory for a child's output: {}", std::strerror(errno)));
  return out;
}

std::string MemoryFile::text(std::size_t most) const {
  // Parent and child share the offset, which is the end of what was written.
  const off_t end = ::lseek(fd(), 0, SEEK_CUR);
  std::string text(std::min(most, static_cast<std::size_t>(std::max<off_t>(end, 0))), '\0');
  std::size_t read = 0;
  while (read < text.size()) {
    const ssize_t n = ::pread(fd(), text.data() + read, text.size() - read,
                              end - static_cast<off_t>(text.size()) + static_cast<off_t>(read));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    read += static_cast<std::size_t>(n);
  }
  text.resize(read);
  return text;
}

}  // namespace partita
