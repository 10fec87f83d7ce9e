#pragma once
#include <algorithm>
#include <exception>
#include <mutex>

#include "core/base/progress.h"
#include "core/base/threads.h"
#include "core/ops/record/call.h"

namespace partita::kernels {

/// Runs f(first, last) over parts of 0 .. n, one for each thread, and raises what one of them raised. What parts
/// compute must not depend on one another, so that the number of threads does not change it.
void in_parts(const EvalContext& context, std::int64_t n, std::int64_t grain, const auto& f) {
  std::mutex mutex;
  std::exception_ptr failed;
  parallel_for(std::max(context.threads, 1), n, grain, 1, [&](std::int64_t first, std::int64_t last, int) {
    try {
      const StopsLoops listening(context.progress);
      f(first, last);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failed = std::current_exception();
    }
  });
  if (failed) std::rethrow_exception(failed);
}

}  // namespace partita::kernels
