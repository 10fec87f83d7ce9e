#pragma once
#include <string>

#include "core/compare/compare.h"

namespace partita::testing {

/// What is wrong with `found`, element by element; empty when nothing is. Where the results of a run in double are
/// given, they excuse what judge_by_baseline() excuses.
inline std::string wrong(const Value& expected, const Value& found, const Tolerance& tolerance,
                         const Value* exact = nullptr) {
  Difference d = compare_values("value", expected, found, tolerance, false);
  if (!d.ok() && exact) judge_by_baseline(d, *exact, expected, found, tolerance);
  return d.ok() ? "" : Report{"expected", "found", {d}}.text();
}

}  // namespace partita::testing
