#pragma once
#include <cstddef>

#include "core/base/result.h"

namespace partita {

/// The limit of tensor bytes that the process may hold at one time: the machine's memory, unless it is set
/// (--memory-limit).
std::size_t memory_limit();
void set_memory_limit(std::size_t bytes);

/// Error tensor.out_of_memory when `bytes` and those `held` already exceed the limit. Ask before allocating.
Status check_fits_in_memory(std::size_t bytes, std::size_t held = 0);

}  // namespace partita
