#pragma once
#include <vector>

#include "core/schedule/group.h"

namespace partita::schedule {

/// Some dims of a space, outermost first, that one loop iterates over. Their indices are the digits of its variable.
using Merged = std::vector<std::size_t>;

/// Merges neighbouring dims in `order` that every element expression walks through as one dim: 4 * d0 + d1 with d1 < 4.
std::vector<Merged> merge_dims(const loops::IndexMath& math, const std::vector<SymExpr>& elements,
                               const Position& position, const SymList& space, const std::vector<std::size_t>& order);

/// The product of the sizes of merged dims.
SymExpr extent(const SymList& space, const Merged& dims);
/// Sets these dims of `at` to the digits of a variable.
void place(const loops::IndexMath& math, const SymList& space, const Merged& dims, SymExpr variable, Position& at);

}  // namespace partita::schedule
