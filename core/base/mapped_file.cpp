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

/// The mapped files, and the thread that copies those which others are about to write. Both live as long as the
/// process.
class Leases {
 public:
  static Leases& get() {
    static auto* const leases = new Leases;
    return *leases;
  }
  bool take(int file) const {
    const f_owner_ex owner{F_OWNER_TID, thread_};
    return ::fcntl(file, F_SETOWN_EX, &owner) == 0 && ::fcntl(file, F_SETSIG, SIGRTMIN) == 0 &&
           ::fcntl(file, F_SETLEASE, F_RDLCK) == 0;
  }
  void add(MappedFile* file) {
    const std::lock_guard lock(mutex_);
    files_.push_back(file);
  }
  void remove(const MappedFile* file) {
    const std::lock_guard lock(mutex_);
    std::erase(files_, file);
  }
  void leave_in_file(std::uintptr_t begin, std::uintptr_t end) {
    // In a process that was forked while another thread held it, the mutex stays locked.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    for (const MappedFile* f : files_) {
      const auto first = reinterpret_cast<std::uintptr_t>(f->data_);
      if (f->file_ < 0 || begin < first || end > first + f->size_) continue;
      begin = begin / page * page;
      ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
  }

 private:
  Leases() {
    std::promise<pid_t> id;
    std::thread([&] {
      sigset_t signals;
      sigemptyset(&signals);
      sigaddset(&signals, SIGRTMIN);
      sigaddset(&signals, SIGIO);  // comes instead when too many signals wait
      pthread_sigmask(SIG_BLOCK, &signals, nullptr);
      id.set_value(::gettid());
      while (true)
        if (sigwaitinfo(&signals, nullptr) > 0) end_leases();
    }).detach();
    thread_ = id.get_future().get();
  }
  /// Those that the system wants back.
  void end_leases() {
    const std::lock_guard lock(mutex_);
    for (MappedFile* f : files_) {
      if (f->file_ < 0 || ::fcntl(f->file_, F_GETLEASE) != F_UNLCK) continue;
      // Without a copy the other program waits until the system ends the lease.
      if (!f->copy()) {
        std::fputs("a file that is open here is about to be written, and there is no memory to copy it\n", stderr);
        continue;
      }
      f->end_lease();
    }
  }

  std::mutex mutex_;
  std::vector<MappedFile*> files_;
  pid_t thread_ = 0;
};

std::unique_ptr<MappedFile> MappedFile::map(int file) {
  std::unique_ptr<MappedFile> out(new MappedFile);
  out->file_ = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  struct stat status;
  if (out->file_ < 0 || !Leases::get().take(out->file_) || ::fstat(out->file_, &status) != 0 || status.st_size <= 0)
    return nullptr;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, out->file_, 0);
  if (data == MAP_FAILED) return nullptr;
  out->data_ = static_cast<std::byte*>(data);
  out->size_ = size;
  Leases::get().add(out.get());
  return out;
}

MappedFile::~MappedFile() {
  Leases::get().remove(this);
  if (data_) ::munmap(data_, size_);
  end_lease();
}

bool MappedFile::copy() {
  void* made = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return false;
  std::copy_n(data_, size_, static_cast<std::byte*>(made));
  // Whoever reads these addresses meanwhile sees one or the other.
  if (::mprotect(made, size_, PROT_READ) == 0 &&
      ::mremap(made, size_, size_, MREMAP_MAYMOVE | MREMAP_FIXED, data_) != MAP_FAILED)
    return true;
  ::munmap(made, size_);
  return false;
}

void MappedFile::end_lease() {
  if (file_ < 0) return;
  ::fcntl(file_, F_SETLEASE, F_UNLCK);  // a forked process may have the file open still
  ::close(file_);
  file_ = -1;
}

void leave_in_file(const void* begin, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  Leases::get().leave_in_file(first, first + bytes);
}

}  // namespace partita
