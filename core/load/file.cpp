#include "core/load/file.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/descriptor.h"

namespace partita {
namespace {

Diagnostic system_error(const char* code, const std::string& path, const char* what) {
  return input_error(code, fmt::format("{}: {}", what, std::strerror(errno)), {.file = path});
}

/// An opened regular file and its size.
struct Opened {
  Descriptor file;
  std::size_t size = 0;
};

Status open_regular(const std::string& path, Opened& out) {
  out.file = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (out.file.get() < 0) return system_error(errno == ENOENT ? "file.missing" : "file.read", path, "cannot open");
  struct stat status;
  if (::fstat(out.file.get(), &status) != 0) return system_error("file.read", path, "cannot read");
  if (!S_ISREG(status.st_mode))
    return input_error("file.read", "not a regular file; give a file or a folder", {.file = path});
  out.size = static_cast<std::size_t>(status.st_size);
  return {};
}

/// Reads fewer than `size` bytes if the file was truncated meanwhile.
Result<std::size_t> read_all(const Opened& opened, char* to, std::size_t size, const std::string& path) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(opened.file.get(), to + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("file.read", path, "cannot read");
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

}  // namespace

Result<std::string> read_head(const std::string& path) {
  Opened opened;
  TRY_DO(open_regular(path, opened));
  std::string out(std::min<std::size_t>(opened.size, 4096), '\0');
  TRY(const std::size_t size, read_all(opened, out.data(), out.size(), path));
  out.resize(size);
  return out;
}

Result<std::shared_ptr<const FileBytes>> FileBytes::open(const std::string& path) {
  Opened opened;
  TRY_DO(open_regular(path, opened));
  std::shared_ptr<FileBytes> out(new FileBytes);
  out->path_ = path;
  constexpr std::size_t least_mapped = 1 << 20;
  if (opened.size >= least_mapped) out->mapped_ = MappedFile::map(opened.file.get());
  if (out->mapped_) {
    out->data_ = reinterpret_cast<const char*>(out->mapped_->data());
    out->size_ = out->mapped_->size();
    return std::shared_ptr<const FileBytes>(std::move(out));
  }
  // Aligned for tensors that lie in it.
  constexpr std::size_t alignment = 64;
  char* data = static_cast<char*>(std::aligned_alloc(alignment, (opened.size / alignment + 1) * alignment));
  if (!data)
    return input_error("file.read", fmt::format("{} bytes do not fit into memory", opened.size), {.file = path});
  out->data_ = data;
  TRY(out->size_, read_all(opened, data, opened.size, path));
  return std::shared_ptr<const FileBytes>(std::move(out));
}

FileBytes::~FileBytes() {
  if (!mapped_) std::free(const_cast<char*>(data_));
}

}  // namespace partita
