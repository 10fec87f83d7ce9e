#pragma once
#include <string>
#include <tuple>

#include "core/compare/compare.h"

namespace partita::testing {

/// What is wrong with `found`, element by element; empty when nothing is. If the results of a run in double are given,
/// judge_by_baseline() may excuse differences.
inline std::string wrong(const Value& expected, const Value& found, const Tolerance& tolerance,
                         const Value* exact = nullptr) {
  Difference d = compare_values("value", expected, found, tolerance, false);
  if (!d.ok() && exact) std::ignore = judge_by_baseline(d, *exact, expected, found, tolerance);
  return d.ok() ? "" : Report{"expected", "found", {d}}.text();
}

}  // namespace partita::testing
