// Writes files: a new file beside the target takes its place with its mode and owner; pipes, devices and open
// descriptors are written in place. Also folders, and logs that others read while they grow.
#include "core/base/output.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/scratch.h"

namespace partita {
namespace {

namespace fs = std::filesystem;

Diagnostic refused(const std::string& path, const std::string& why) {
  return input_error("file.write", "cannot write: " + why, {.file = path});
}
Diagnostic system_error(const std::string& path) {
  return refused(path, std::strerror(errno));
}

/// The number of a path such as /proc/self/fd/1, to which /dev/stdout leads; -1 for others.
int named_descriptor(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.empty() || name.size() > 9 || name.find_first_not_of("0123456789") != std::string::npos) return -1;
  std::error_code failed;
  const bool own = fs::equivalent(path.parent_path(), "/proc/self/fd", failed);
  return own && !failed ? std::stoi(name) : -1;
}

/// Follows the links at the end of a path, also one to a file that does not exist yet. Only this process's own
/// descriptors under /proc are left: what the link says there need not be a path.
fs::path follow_links(fs::path path) {
  constexpr int most_links = 40;  // as the kernel; it refuses longer chains before
  std::error_code failed;
  for (int i = 0; i < most_links && named_descriptor(path) < 0; ++i) {
    const fs::path to = fs::read_symlink(path, failed);
    if (failed) break;
    path = path.parent_path() / to;
  }
  return path;
}

Status check_folder_takes_files(const fs::path& file) {
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return {};
  return refused(file.string(), fmt::format("the folder {}: {}", folder, std::strerror(errno)));
}

/// While it lives, a pipe without a reader is an error of write() on this thread, and does not end the process.
class PipeErrors {
 public:
  PipeErrors() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~PipeErrors() {
    const timespec now = {};
    const int error = errno;
    if (!sigismember(&before_, SIGPIPE)) ::sigtimedwait(&pipe_, nullptr, &now);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  PipeErrors(const PipeErrors&) = delete;
  PipeErrors& operator=(const PipeErrors&) = delete;

 private:
  sigset_t pipe_, before_;
};

bool write_parts(int fd, std::span<const std::string_view> parts) {
  return std::ranges::all_of(parts, [fd](std::string_view part) { return write_all(fd, part.data(), part.size()); });
}

Status write_to_stdout(std::span<const std::string_view> parts) {
  for (const std::string_view part : parts)
    if (std::fwrite(part.data(), 1, part.size(), stdout) != part.size()) return system_error("standard output");
  return std::fflush(stdout) == 0 ? Status() : Status(system_error("standard output"));
}

Status write_in_place(const OutputPlace& place, std::span<const std::string_view> parts) {
  const bool open = place.way == OutputWay::Descriptor;
  const int fd = open ? place.descriptor : ::open(place.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return system_error(place.path);
  const PipeErrors errors;
  bool written = write_parts(fd, parts);
  if (!open) written = ::close(fd) == 0 && written;
  return written ? Status() : Status(system_error(place.path));
}

/// A new file beside the target, which is removed again unless it takes the target's place.
class Replacement {
 public:
  /// Error file.write.
  Status make(const OutputPlace& place, OutputKind kind) {
    const fs::path folder = fs::path(place.path).parent_path();
    // A file that others may not read is at no time one that they may.
    const mode_t mode = place.exists ? 0600 : kind == OutputKind::Program ? 0777 : 0666;
    for (int tries = 0; tries < 100 && fd_ < 0; ++tries) {
      std::uint64_t number = 0;
      if (::getrandom(&number, sizeof number, 0) != sizeof number) break;
      name_ = (folder / fmt::format(".partita-{:016x}", number)).string();
      removed_.emplace(name_);
      fd_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
      if (fd_ >= 0 || errno != EEXIST) break;
    }
    if (fd_ >= 0) return {};
    name_.clear();
    return system_error(place.path);
  }

  Status write(const OutputPlace& place, std::span<const std::string_view> parts) {
    bool done = write_parts(fd_, parts);
    if (done && place.exists) {
      // Only root may give a file away; then the group alone, if it is one of this user's.
      if (::fchown(fd_, place.status.st_uid, place.status.st_gid) != 0) [[maybe_unused]]
        const int group = ::fchown(fd_, static_cast<uid_t>(-1), place.status.st_gid);
      done = ::fchmod(fd_, place.status.st_mode & 0777) == 0;
    }
    done = ::close(std::exchange(fd_, -1)) == 0 && done;  // a file system over a network may tell errors only here
    done = done && ::rename(name_.c_str(), place.path.c_str()) == 0;
    if (!done) return system_error(place.path);
    name_.clear();
    return {};
  }

  Replacement() = default;
  ~Replacement() {
    const int error = errno;
    if (fd_ >= 0) {
      ::close(fd_);
      fd_ = -1;
    }
    if (!name_.empty()) ::unlink(name_.c_str());
    errno = error;
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

 private:
  int fd_ = -1;
  std::string name_;
  std::optional<RemovedOnSignal> removed_;
};

}  // namespace

Result<OutputWay> output_way(mode_t mode, const std::string& path) {
  if (S_ISREG(mode)) return OutputWay::Replace;
  if (S_ISFIFO(mode) || S_ISCHR(mode)) return OutputWay::InPlace;
  if (S_ISDIR(mode)) return refused(path, "it is a folder; name a file");
  if (S_ISBLK(mode)) return refused(path, "it is a block device; name a file and copy that");
  return refused(path, "it is no file; name another");
}

Result<OutputPlace> output_place(const std::string& path) {
  if (path == "-") return OutputPlace{.way = OutputWay::Descriptor, .path = path, .descriptor = STDOUT_FILENO};
  OutputPlace place;
  // The kernel follows the links first, and refuses those that others left in a shared folder.
  place.exists = ::stat(path.c_str(), &place.status) == 0;
  if (!place.exists && errno != ENOENT) return system_error(path);
  const fs::path followed = follow_links(path);
  place.path = followed.string();
  if (place.descriptor = named_descriptor(followed); place.descriptor >= 0) {
    if (!place.exists) return refused(path, "no such descriptor is open");
    place.way = OutputWay::Descriptor;
    return place;
  }
  if (!place.exists && !followed.has_filename()) return refused(path, "it is no file; name a file");
  if (place.exists) {
    TRY(place.way, output_way(place.status.st_mode, path));
    if (place.way == OutputWay::InPlace) place.path = path;  // /proc names pipes of other processes by links to nowhere
    if (::faccessat(AT_FDCWD, place.path.c_str(), W_OK, AT_EACCESS) != 0) return system_error(path);
  }
  if (place.way == OutputWay::Replace) TRY_DO(check_folder_takes_files(followed));
  return place;
}

Status write_file(const std::string& path, std::span<const std::string_view> parts, OutputKind kind) {
  TRY(const OutputPlace place, output_place(path));
  if (place.descriptor == STDOUT_FILENO) return write_to_stdout(parts);
  if (place.way != OutputWay::Replace) return write_in_place(place, parts);
  Replacement made;
  TRY_DO(made.make(place, kind));
  return made.write(place, parts);
}

Status write_file(const std::string& path, std::string_view bytes, OutputKind kind) {
  return write_file(path, {&bytes, 1}, kind);
}

Status move_file(const std::string& from, const std::string& path) {
  TRY(const OutputPlace place, output_place(path));
  if (place.way != OutputWay::Replace) return refused(path, "it is no file");
  if (place.exists && ::chmod(from.c_str(), place.status.st_mode & 0777) != 0) return system_error(path);
  return ::rename(from.c_str(), place.path.c_str()) == 0 ? Status() : Status(system_error(path));
}

Status make_folder(const std::string& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) return input_error("file.write", "the folder cannot be made: " + failed.message(), {.file = path});
  return {};
}

Status check_folder(const std::string& path) {
  std::error_code failed;
  fs::path there = path;
  while (!fs::exists(there, failed) && there.has_relative_path()) there = there.parent_path();
  if (there.empty()) there = ".";
  std::string why;
  if (!fs::is_directory(there, failed))
    why = "is no folder";
  else if (::faccessat(AT_FDCWD, there.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    why = std::strerror(errno);
  if (why.empty()) return {};
  return input_error("file.write", fmt::format("the folder cannot be written: {}: {}", there.string(), why),
                     {.file = path});
}

Result<OutputLog> OutputLog::open(const std::string& path) {
  TRY(const OutputPlace place, output_place(path));
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY;
  const int fd = place.way == OutputWay::Descriptor ? ::fcntl(place.descriptor, F_DUPFD_CLOEXEC, 0)
                                                    : ::open(place.path.c_str(), flags, 0666);
  if (fd < 0) return system_error(path);
  return OutputLog(path, fd);
}

OutputLog::OutputLog(OutputLog&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

OutputLog::~OutputLog() {
  if (fd_ >= 0) ::close(fd_);
}

Status OutputLog::write(std::string_view bytes) {
  const PipeErrors errors;
  return write_all(fd_, bytes.data(), bytes.size()) ? Status() : Status(system_error(path_));
}

}  // namespace partita
