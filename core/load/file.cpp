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
Result<std::size_t> read_all(int file, char* to, std::size_t begin, std::size_t size, const std::string& path) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = ::pread(file, to + done, size - done, static_cast<off_t>(begin + done));
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
  TRY(const std::size_t size, read_all(opened.file.get(), out.data(), 0, out.size(), path));
  out.resize(size);
  return out;
}

Result<std::shared_ptr<const FileBytes>> FileBytes::open(const std::string& path) {
  Opened opened;
  TRY_DO(open_regular(path, opened));
  constexpr std::size_t least_mapped = 1 << 20;
  std::unique_ptr<MappedFile> mapped;
  if (opened.size >= least_mapped) mapped = MappedFile::map(opened.file.get());
  if (!mapped) return read(opened.file.get(), 0, opened.size, path);
  std::shared_ptr<FileBytes> out(new FileBytes);
  out->path_ = path;
  out->mapped_ = std::move(mapped);
  out->data_ = reinterpret_cast<const char*>(out->mapped_->data());
  out->size_ = out->mapped_->size();
  return std::shared_ptr<const FileBytes>(std::move(out));
}

Result<std::shared_ptr<const FileBytes>> FileBytes::open_from(const std::string& path, std::size_t begin) {
  Opened opened;
  TRY_DO(open_regular(path, opened));
  return read(opened.file.get(), begin, std::max(begin, opened.size), path);
}

Result<std::shared_ptr<const FileBytes>> FileBytes::read(int file, std::size_t begin, std::size_t end,
                                                         const std::string& path) {
  std::shared_ptr<FileBytes> out(new FileBytes);
  out->path_ = path;
  // Aligned for tensors that lie in it.
  constexpr std::size_t alignment = 64;
  char* data = static_cast<char*>(std::aligned_alloc(alignment, ((end - begin) / alignment + 1) * alignment));
  if (!data)
    return input_error("file.read", fmt::format("{} bytes do not fit into memory", end - begin), {.file = path});
  out->data_ = data;
  TRY(out->size_, read_all(file, data, begin, end - begin, path));
  return std::shared_ptr<const FileBytes>(std::move(out));
}

FileBytes::~FileBytes() {
  if (!mapped_) std::free(const_cast<char*>(data_));
}

}  // namespace partita
