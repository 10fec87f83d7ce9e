#include "core/base/threads.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "core/base/openmp.h"

namespace partita {

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

void run_parts(int threads, std::int64_t n, std::int64_t grain, std::int64_t alignment,
               void (*fn)(const void*, std::int64_t, std::int64_t, int), const void* context) {
  if (n <= 0) return;
  std::int64_t parts = std::min<std::int64_t>(threads, n / std::max<std::int64_t>(grain, 1));
  if (parts <= 1) return fn(context, 0, n, 0);
  std::int64_t share = (n + parts - 1) / parts;
  share = (share + alignment - 1) / alignment * alignment;
  struct Region {
    std::int64_t n, parts, share;
    void (*fn)(const void*, std::int64_t, std::int64_t, int);
    const void* context;
  } region{n, parts, share, fn, context};
  const auto work = [](void* data) {
    const auto& r = *static_cast<const Region*>(data);
    for (std::int64_t p = omp_get_thread_num(); p < r.parts; p += omp_get_num_threads()) {
      const std::int64_t begin = p * r.share, end = std::min(r.n, begin + r.share);
      if (begin < end) r.fn(r.context, begin, end, static_cast<int>(p));
    }
  };
  GOMP_parallel(work, &region, static_cast<unsigned>(parts), 0);
}

}  // namespace partita
