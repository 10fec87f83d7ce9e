#pragma once
#include <cstdint>

#include "core/base/result.h"

namespace partita::codegen {

/// Can so many threads run at a time? OpenMP ends the process where they cannot. Error codegen.threads.
Status check_threads(int threads);

/// Runs fn(context, begin, end, thread) over [0, n) in at most `threads` parts, and returns when all are done. Bounds
/// of parts are multiples of `alignment`, and each part has at least `grain` iterations. The threads are OpenMP's,
/// which oneDNN uses too, so that both together use no more than asked for.
void parallel_for(int threads, std::int64_t n, std::int64_t grain, std::int64_t alignment,
                  void (*fn)(void* context, std::int64_t begin, std::int64_t end, int thread), void* context);

}  // namespace partita::codegen
