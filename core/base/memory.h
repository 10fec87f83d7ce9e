#pragma once
#include <cstddef>

#include "core/base/result.h"

namespace partita {

/// Bytes of tensors that the process may hold at one time: the memory of the machine, unless somebody sets another
/// limit (--memory-limit).
std::size_t memory_limit();
void set_memory_limit(std::size_t bytes);

/// Error tensor.out_of_memory when `bytes`, beside those `held` already, pass the limit. Ask before allocating.
Status check_fits_in_memory(std::size_t bytes, std::size_t held = 0);

}  // namespace partita
