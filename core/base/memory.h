#pragma once
#include <cstddef>
#include <string>

#include "core/base/result.h"

namespace partita {

/// The limit of tensor bytes that the process may hold at one time: the machine's memory, unless it is set
/// (--memory-limit).
std::size_t memory_limit();
void set_memory_limit(std::size_t bytes);

/// Counts tensor bytes that are allocated (or freed: negative).
void count_held(std::ptrdiff_t bytes);
/// Tensor bytes that the process holds, and the most that it held since it began or reset_most_held() was called.
std::size_t held_bytes();
std::size_t most_held_bytes();
void reset_most_held();

/// The limit of nodes, and of terms of symbolic sizes, that one file may ask for: a million, unless it is set
/// (--graph-limit).
std::size_t graph_limit();
void set_graph_limit(std::size_t count);
std::string too_many_nodes();  ///< the message for a graph beyond it
/// The limit of turns that the loops of one call may take where a number of the call says how many, and no size: a
/// thousand million, unless it is set (--loop-limit).
std::size_t loop_limit();
void set_loop_limit(std::size_t turns);

/// Error tensor.out_of_memory when `bytes` and those `held` already exceed the limit. Ask before allocating.
Status check_fits_in_memory(std::size_t bytes, std::size_t held = 0);

}  // namespace partita
