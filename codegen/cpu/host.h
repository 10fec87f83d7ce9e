#pragma once
#include <cstddef>

namespace partita::codegen {

/// What a plan should know of the machine it is made for.

/// The largest cache that a core reads through, as Linux tells it; 0: the system does not say.
std::size_t last_level_cache_bytes();
/// Does oneDNN compute convolutions with channels innermost on this processor?
bool convolutions_want_channels_last();

}  // namespace partita::codegen
