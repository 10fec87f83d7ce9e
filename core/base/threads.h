#pragma once
#include <cstdint>

#include "core/base/result.h"

namespace partita {

/// Can so many threads run at a time? A parallel region ends the process where they cannot. Error codegen.threads.
Status check_threads(int threads);

/// Runs fn(context, begin, end, thread) for the parts of parallel_for().
void run_parts(int threads, std::int64_t n, std::int64_t grain, std::int64_t alignment,
               void (*fn)(const void* context, std::int64_t begin, std::int64_t end, int thread), const void* context);

/// Runs fn(begin, end, thread) over [0, n) in at most `threads` parts, and returns when all are done; fn must not
/// throw. Bounds of parts are multiples of `alignment`, and each part has at least `grain` iterations. The threads are
/// those of openmp.h, which oneDNN uses too, so that both together use no more than asked for.
template <class F>
void parallel_for(int threads, std::int64_t n, std::int64_t grain, std::int64_t alignment, const F& fn) {
  run_parts(
      threads, n, grain, alignment,
      [](const void* f, std::int64_t begin, std::int64_t end, int thread) {
        (*static_cast<const F*>(f))(begin, end, thread);
      },
      &fn);
}

}  // namespace partita
