#pragma once
#include <span>

#include "core/base/result.h"
#include "core/loops/loop.h"

namespace partita::loops {

/// Runs a kernel one element at a time. It defines what loops mean; tests and checks compare backends with it.
/// `buffers` are the addresses of the non-scratch buffers, in order; sizes are concrete. Errors are those of evaluate()
/// in scalar_eval.h; loops.race when iterations of a parallel loop access one element without a barrier between them
/// and one of them stores, or when lanes read each other's stores; loops.scratch when scratch is read that its owner
/// did not store.
Status execute(const Kernel& kernel, std::span<void* const> buffers);

}  // namespace partita::loops
