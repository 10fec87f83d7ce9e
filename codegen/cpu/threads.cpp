#include "codegen/cpu/threads.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

namespace partita::codegen {

Status check_threads(int threads) {
  static std::atomic<int> known = 1;
  if (threads <= known) return {};
  std::latch end(1);
  std::vector<std::jthread> others;
  std::string failed;
  try {
    for (int i = 1; i < threads; ++i) others.emplace_back([&end] { end.wait(); });
  } catch (const std::system_error& error) {
    failed = error.code().message();
  }
  end.count_down();
  others.clear();
  if (!failed.empty())
    return input_error("codegen.threads",
                       fmt::format("{} threads cannot be started ({}); take fewer with --threads, or "
                                   "raise the limit (ulimit -u)",
                                   threads, failed));
  known = threads;
  return {};
}

void parallel_for(int threads, std::int64_t n, std::int64_t grain, std::int64_t alignment,
                  void (*fn)(void*, std::int64_t, std::int64_t, int), void* context) {
  if (n <= 0) return;
  std::int64_t parts = std::min<std::int64_t>(threads, n / std::max<std::int64_t>(grain, 1));
  if (parts <= 1) return fn(context, 0, n, 0);
  std::int64_t share = (n + parts - 1) / parts;
  share = (share + alignment - 1) / alignment * alignment;
#pragma omp parallel for num_threads(static_cast<int>(parts)) schedule(static, 1)
  for (std::int64_t p = 0; p < parts; ++p) {
    std::int64_t begin = p * share, end = std::min(n, begin + share);
    if (begin < end) fn(context, begin, end, static_cast<int>(p));
  }
}

}  // namespace partita::codegen
