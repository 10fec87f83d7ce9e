#pragma once
#include <set>
#include <string>

#include "core/ir/meta.h"

namespace partita {

/// The symbols in the sizes, strides, offsets and numbers of a value.
std::set<std::string> symbols_of(const Meta& meta);

}  // namespace partita
