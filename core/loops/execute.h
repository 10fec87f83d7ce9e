#pragma once
#include <span>

#include "core/base/result.h"
#include "core/loops/loop.h"

namespace partita::loops {

/// Runs a kernel one element at a time: what its loops mean, for tests and for checking a backend. `buffers` are the
/// addresses of the non-scratch buffers, in order; sizes are concrete. Errors as evaluate() of scalar_eval.h;
/// loops.race where iterations of a parallel loop meet at an element without a barrier between them, one of them to
/// store, or where lanes read one another's stores; loops.scratch where scratch is read that its owner did not store.
Status execute(const Kernel& kernel, std::span<void* const> buffers);

}  // namespace partita::loops
