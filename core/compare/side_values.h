#pragma once
// The values behind a row of a comparison, of any number of sides beside one another.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/compare/compare.h"

namespace partita {

/// What one side has for a row.
struct SideValue {
  std::string name;  ///< "cpu+fuse=false"
  std::optional<Value> value;
  std::optional<Statistics> statistics;  ///< of the value, or those that are left of it
  std::string why_no_value;              ///< empty: there is one
};
/// One side's value of a node, or why there is none.
SideValue side_value(std::string name, Result<Value> value);

/// Row-major and real: complex numbers become pairs in a last dimension.
Result<Tensor> as_real(const Tensor& t);

/// One element in all sides.
struct ElementRow {
  Sizes index;
  std::vector<std::optional<double>> values;  ///< by side; unset where a side has no tensor of these sizes
};
/// The elements at which any side is farthest from the first, measured by the tolerance; those that differ most come
/// first, and of those that differ alike the first in memory. Elements that are equal everywhere are left out. NaN
/// equals NaN.
Result<std::vector<ElementRow>> farthest_elements(std::span<const SideValue> sides, const Tolerance& tolerance,
                                                  std::size_t count);

/// Statistics of each side and the elements of farthest_elements(), a column for each side.
Result<std::string> values_text(std::span<const SideValue> sides, const Tolerance& tolerance, std::size_t count);
Result<nlohmann::ordered_json> values_json(std::span<const SideValue> sides, const Tolerance& tolerance,
                                           std::size_t count);

/// "norm 3.2, mean 0.1, -1 .. 2, 0 NaN, 0 inf; zero: 4, 1e-1: 12": the last are magnitudes by powers of ten.
std::string statistics_text(const Statistics& statistics);

}  // namespace partita
