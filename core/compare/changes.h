#pragma once
// Two comparisons of the past beside one another.
#include <string>
#include <vector>

#include "core/compare/compare.h"

namespace partita {

/// How the second report relates to the first at one row, the most important first.
enum class RowChange : unsigned char { Broken, BrokenAfter, Fixed, Worse, Better, OnOneSide, Same };

struct ChangedRow {
  const Difference *a = nullptr, *b = nullptr;  ///< null: that report has no such row
  RowChange change = RowChange::Same;
  std::string text;  ///< "broken", "broken after gelu", "3.2 times larger", "only in A"

  const Difference& any() const { return b ? *b : *a; }
};

/// Row by row, the most important change first and of equal ones the largest error of `b`. Points into both.
std::vector<ChangedRow> changed_rows(const Report& a, const Report& b);

}  // namespace partita
