#pragma once
#include <cstddef>

namespace partita {

/// Writes all bytes to a pipe, a file or a socket. False when the reader is gone; a socket then raises no SIGPIPE.
bool write_all(int fd, const void* data, std::size_t size);

}  // namespace partita
