#pragma once
#include <cstddef>
#include <memory>
#include <mutex>

#include "core/base/result.h"

namespace partita {

/// A file's bytes as memory, which the system reads from the file when they are used. Another program that is about to
/// write or truncate the file waits (fcntl(2), leases) until they are copied, so they stay as they were.
class MappedFile {
 public:
  /// `file` is a descriptor that is open for reading only. Null where the system gives no lease: the file is another
  /// user's, somebody writes it, it is empty or no regular file, or its file system has none. Then it can only be read.
  static std::unique_ptr<MappedFile> map(int file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::byte* data() const { return data_; }  ///< cannot be written
  std::size_t size() const { return size_; }

 private:
  friend class Leases;
  MappedFile() = default;
  bool map();
  bool copy();  ///< puts a copy in the place of the file, and ends the lease
  void end_lease();

  int file_ = -1;  ///< has the lease; -1 when the bytes are a copy
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Takes no memory for these bytes until they are used again, if they are a mapped file's. Others may be given too.
void leave_in_file(const void* begin, std::size_t bytes);

/// For fork(), since a lease tells only one process before the file is truncated. No file is mapped until the lock is
/// released, which both processes do. Error memory.mapped when there is no memory for the copies.
Result<std::unique_lock<std::mutex>> copy_mapped_files();

}  // namespace partita
