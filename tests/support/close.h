#pragma once
#include <string>

#include "core/compare/compare.h"
#include "core/compare/rounding.h"
#include "core/interp/interpreter.h"

namespace partita::testing {

/// What is wrong with `found`, element by element; empty when nothing is. Where the results of a run in double are
/// given, they excuse what judge_by_baseline() excuses.
inline std::string wrong(const Value& expected, const Value& found, const Tolerance& tolerance,
                         const Value* exact = nullptr) {
  Difference d = compare_values("value", expected, found, tolerance, false);
  if (!d.ok() && exact) judge_by_baseline(d, *exact, expected, found, tolerance);
  return d.ok() ? "" : Report{"expected", "found", {d}}.text();
}

/// The same for a result of a graph. What rounding explains of a difference from the run in double is not wrong.
inline std::string wrong(const Value& expected, const Value& found, const Tolerance& tolerance, const Graph& graph,
                         const std::vector<Value>& inputs, std::size_t result) {
  const std::string text = wrong(expected, found, tolerance);
  const Tensor* t = found.get<Tensor>();
  if (text.empty() || !t) return text;
  const auto exact = interpret(graph, inputs, {.float64 = true});
  const auto moved = exact ? moved_by_rounding(graph, inputs, *exact) : std::nullopt;
  const Tensor* in_double = moved ? (*exact)[result].get<Tensor>() : nullptr;
  const bool explained = in_double && explained_by_rounding(*in_double, *t, tolerance, (*moved)[result]);
  return explained ? "" : text;
}

}  // namespace partita::testing
