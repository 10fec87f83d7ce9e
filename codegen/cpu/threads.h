#pragma once
#include <cstdint>

namespace partita::codegen {

/// Runs fn(context, begin, end, thread) over [0, n) in at most `threads` parts whose bounds are multiples of
/// `alignment` and that have at least `grain` iterations each; returns when all are done. The threads are OpenMP's own,
/// the ones that oneDNN works with, so that both together never take more than asked for.
void parallel_for(int threads, std::int64_t n, std::int64_t grain, std::int64_t alignment,
                  void (*fn)(void* context, std::int64_t begin, std::int64_t end, int thread), void* context);

}  // namespace partita::codegen
