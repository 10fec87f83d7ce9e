#pragma once
#include <cstddef>
#include <string>

#include "core/base/result.h"

namespace partita {

/// The limit of tensor bytes that the process may hold at one time: the configuration's
/// memory_limit, or the machine's memory.
std::size_t memory_limit();

/// Counts tensor bytes that are allocated (or freed: negative).
void count_held(std::ptrdiff_t bytes);
/// Tensor bytes that the process holds, and the most that it held since it began or reset_most_held() was called.
std::size_t held_bytes();
std::size_t most_held_bytes();
void reset_most_held();

std::string too_many_nodes();  ///< the message for a graph beyond the configuration's graph_limit

/// Error tensor.out_of_memory when `bytes` and those `held` already exceed the limit. Ask before allocating.
Status check_fits_in_memory(std::size_t bytes, std::size_t held = 0);

}  // namespace partita
