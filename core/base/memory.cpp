#include "core/base/memory.h"

#include <atomic>

#include <fmt/format.h>
#include <unistd.h>

namespace partita {
namespace {

std::size_t machine_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page)
                               : std::size_t(1) << 36;
}

/// Made at first use, because global tensors may be allocated before this file's own globals are made.
std::atomic<std::size_t>& limit() {
  static std::atomic<std::size_t> bytes{machine_memory()};
  return bytes;
}

constinit std::atomic<std::size_t> held{0}, most_held{0};
std::atomic<std::size_t> graph_count{1'000'000};
std::atomic<std::size_t> loop_turns{1'000'000'000};

}  // namespace

std::size_t graph_limit() {
  return graph_count;
}

void set_graph_limit(std::size_t count) {
  graph_count = count;
}

std::string too_many_nodes() {
  return fmt::format("more than {} nodes; raise the limit with --graph-limit", graph_limit());
}

std::size_t loop_limit() {
  return loop_turns;
}

void set_loop_limit(std::size_t turns) {
  loop_turns = turns;
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
  return limit();
}

void set_memory_limit(std::size_t bytes) {
  limit() = bytes;
}

Status check_fits_in_memory(std::size_t bytes, std::size_t held) {
  const std::size_t most = limit();
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
