#include "core/base/memory.h"

#include <atomic>

#include <fmt/format.h>
#include <unistd.h>

#include "core/base/config.h"

namespace partita {
namespace {

std::size_t machine_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page)
                               : std::size_t(1) << 36;
}

constinit std::atomic<std::size_t> held{0}, most_held{0};

}  // namespace

std::string too_many_nodes() {
  return fmt::format("more than {} nodes; raise the limit with --graph-limit", config().graph_limit);
}

void count_held(std::ptrdiff_t bytes) {
  const std::size_t now = held += static_cast<std::size_t>(bytes);
  std::size_t most = most_held;
  while (now > most && bytes > 0 && !most_held.compare_exchange_weak(most, now)) {
  }
}

std::size_t held_bytes() {
  return held;
}

std::size_t most_held_bytes() {
  return most_held;
}

void reset_most_held() {
  most_held = held.load();
}

std::size_t memory_limit() {
  static const std::size_t of_machine = machine_memory();
  const std::size_t chosen = config().memory_limit;
  return chosen > 0 ? chosen : of_machine;
}

Status check_fits_in_memory(std::size_t bytes, std::size_t held) {
  const std::size_t most = memory_limit();
  if (held <= most && bytes <= most - held) return {};
  return input_error("tensor.out_of_memory",
                     held == 0
                         ? fmt::format("cannot allocate {} bytes, the limit is {}; use smaller sizes, or raise it "
                                       "with --memory-limit",
                                       bytes, most)
                         : fmt::format("cannot allocate {} bytes beside {} in use, the limit is {}; use smaller "
                                       "sizes, or raise it with --memory-limit",
                                       bytes, held, most));
}

}  // namespace partita
