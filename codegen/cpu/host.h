#pragma once
#include <cstddef>

namespace partita::codegen {

/// What a plan needs to know of the machine that it is made for.

/// The size of the largest cache of a core, as Linux reports it; 0: unknown.
std::size_t last_level_cache_bytes();
/// Does oneDNN compute convolutions with channels innermost on this processor?
bool convolutions_want_channels_last();

}  // namespace partita::codegen
