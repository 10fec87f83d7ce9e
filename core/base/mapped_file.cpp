#include "core/base/mapped_file.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace partita {

/// The mapped files, and the thread that copies those which others are about to write. They live as long as the
/// process.
class Leases {
 public:
  static Leases& get() {
    static auto* const leases = new Leases;
    return *leases;
  }
  /// Takes a lease of the file and maps it. Returns whether it could.
  bool add(MappedFile* file) {
    const std::lock_guard lock(mutex_);
    start_thread();
    const f_owner_ex owner{F_OWNER_TID, thread_};
    const bool leased = ::fcntl(file->file_, F_SETOWN_EX, &owner) == 0 &&
                        ::fcntl(file->file_, F_SETSIG, SIGRTMIN) == 0 && ::fcntl(file->file_, F_SETLEASE, F_RDLCK) == 0;
    if (!leased || !file->map()) return false;
    files_.push_back(file);
    return true;
  }
  void remove(const MappedFile* file) {
    const std::lock_guard lock(mutex_);
    std::erase(files_, file);
  }
  void leave_in_file(std::uintptr_t begin, std::uintptr_t end) {
    const std::lock_guard lock(mutex_);
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    for (const MappedFile* f : files_) {
      const auto first = reinterpret_cast<std::uintptr_t>(f->data_);
      if (f->file_ < 0 || begin < first || end > first + f->size_) continue;
      begin = begin / page * page;
      ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
  }
  Result<std::unique_lock<std::mutex>> copy_all() {
    std::unique_lock lock(mutex_);
    for (MappedFile* f : files_)
      if (f->file_ >= 0 && !f->copy())
        return input_error("memory.mapped", "no memory to copy a file that is open, which another process needs");
    return lock;
  }

 private:
  /// In a forked process the thread is missing.
  void start_thread() {
    if (process_ == ::getpid()) return;
    std::promise<pid_t> id;
    std::thread([this, &id] {
      sigset_t signals;
      sigemptyset(&signals);
      sigaddset(&signals, SIGRTMIN);
      sigaddset(&signals, SIGIO);  // comes instead when too many signals wait
      pthread_sigmask(SIG_BLOCK, &signals, nullptr);
      id.set_value(::gettid());
      while (true)
        if (sigwaitinfo(&signals, nullptr) > 0) copy_wanted();
    }).detach();
    thread_ = id.get_future().get();
    process_ = ::getpid();
  }
  /// Copies the files whose leases the system wants back.
  void copy_wanted() {
    const std::lock_guard lock(mutex_);
    for (MappedFile* f : files_)
      // Without a copy the other program waits until the system ends the lease.
      if (f->file_ >= 0 && ::fcntl(f->file_, F_GETLEASE) == F_UNLCK && !f->copy())
        std::fputs("a file that is open here is about to be written, and there is no memory to copy it\n", stderr);
  }

  std::mutex mutex_;
  std::vector<MappedFile*> files_;
  pid_t thread_ = 0, process_ = 0;
};

std::unique_ptr<MappedFile> MappedFile::map(int file) {
  std::unique_ptr<MappedFile> out(new MappedFile);
  out->file_ = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (out->file_ < 0 || !Leases::get().add(out.get())) return nullptr;
  return out;
}

MappedFile::~MappedFile() {
  Leases::get().remove(this);
  if (data_) ::munmap(data_, size_);
  end_lease();
}

bool MappedFile::map() {
  struct stat status;
  if (::fstat(file_, &status) != 0 || status.st_size <= 0) return false;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file_, 0);
  if (data == MAP_FAILED) return false;
  data_ = static_cast<std::byte*>(data);
  size_ = size;
  return true;
}

bool MappedFile::copy() {
  void* made = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return false;
  std::copy_n(data_, size_, static_cast<std::byte*>(made));
  // Whoever reads these addresses meanwhile sees one or the other.
  if (::mprotect(made, size_, PROT_READ) != 0 ||
      ::mremap(made, size_, size_, MREMAP_MAYMOVE | MREMAP_FIXED, data_) == MAP_FAILED) {
    ::munmap(made, size_);
    return false;
  }
  end_lease();
  return true;
}

void MappedFile::end_lease() {
  if (file_ < 0) return;
  ::fcntl(file_, F_SETLEASE, F_UNLCK);
  ::close(file_);
  file_ = -1;
}

void leave_in_file(const void* begin, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  Leases::get().leave_in_file(first, first + bytes);
}

Result<std::unique_lock<std::mutex>> copy_mapped_files() {
  return Leases::get().copy_all();
}

}  // namespace partita
