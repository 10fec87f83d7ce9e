#pragma once
#include <vector>

#include "core/schedule/group.h"

namespace partita::schedule {

/// Some dims of a space, outermost first, iterated by one loop; its variable's digits are their indices.
using Merged = std::vector<std::size_t>;

/// Joins neighbours in `order` that every element expression walks through as one: 4 * d0 + d1 with d1 < 4.
std::vector<Merged> merge_dims(const loops::IndexMath& math, const std::vector<SymExpr>& elements,
                               const Position& position, const Sizes& space, const std::vector<std::size_t>& order);

std::int64_t extent(const Sizes& space, const Merged& dims);
/// Sets the dims of `at` to the digits of a variable.
void place(const loops::IndexMath& math, const Sizes& space, const Merged& dims, SymExpr variable, Position& at);

}  // namespace partita::schedule
