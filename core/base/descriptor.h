#pragma once
#include <cstddef>
#include <utility>

#include <unistd.h>

namespace partita {

/// An open descriptor, closed with its owner; -1: none.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

/// Writes all bytes to a pipe, a file or a socket. False when the reader is gone; a socket then raises no SIGPIPE.
bool write_all(int fd, const void* data, std::size_t size);

}  // namespace partita
