#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "core/ops/record/record.h"

namespace partita {

/// Something that a record can have: a column of `partita ops` and of the window's coverage.
struct OpAspect {
  std::string_view name;                       ///< "fake"
  std::string_view (*state)(const OpRecord&);  ///< "own", "derived", "library", "none" (no gradient), or empty
};
/// In the order of the columns.
std::span<const OpAspect> op_aspects();
/// What else to know at a glance: "expensive", "random", "view", ...
std::vector<std::string_view> op_tags(const OpRecord& record);

}  // namespace partita
