#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/value.h"

namespace partita {

/// A tensor, or a number as one without dimensions; nullopt for other values.
Result<std::optional<Tensor>> tensor_or_number(const Value& value);
/// The indices of the element at this place in row-major order.
Sizes index_at(const Sizes& sizes, std::int64_t position);

/// Values agree if |found - expected| <= absolute + relative * |expected|.
struct Tolerance {
  double relative = 1e-4;
  double absolute = 1e-5;
  /// Values of 16 and fewer bits may also be one unit in the last place apart: the relative tolerance is at least that.
  bool unit = false;

  Tolerance of(DType t) const;  ///< for values of a dtype
};
/// For one computation done in two ways, where no run in double tells rounding from error.
inline Tolerance tolerance_without_baseline() {
  return {.unit = true};
}
/// torch.testing.assert_close's default for a dtype.
Tolerance default_tolerance(DType t);

/// The distribution of |found - expected| by powers of ten.
struct ErrorHistogram {
  static constexpr int lowest = -16, highest = 6;  ///< exponents; smaller and larger errors count in the end bins
  std::int64_t equal = 0;                          ///< elements that are equal, NaN and infinities too
  std::int64_t not_finite = 0;                     ///< one element is NaN or infinite, and the other differs from it
  std::array<std::int64_t, highest - lowest + 1> decades = {};  ///< [k]: 10^(lowest + k) <= error < 10^(lowest + k + 1)

  void add(double error);  ///< error of a finite pair that differs
};

/// What of a value matters to training. Magnitudes of complex elements.
struct Statistics {
  std::int64_t numel = 0, nan = 0, inf = 0;
  double norm = 0, mean = 0, least = 0, greatest = 0;  ///< of the finite elements; norm: the root of their squares' sum
  ErrorHistogram magnitudes;                           ///< of the distances to zero; `equal` counts the zeros
  std::string hash;                                    ///< of dtype, sizes and elements, bit for bit
};
/// Nullopt for what is no number and no tensor of numbers.
std::optional<Statistics> statistics_of(const Value& value);

struct WrongElement {
  Sizes index;
  double expected = 0, found = 0;  ///< magnitudes for complex values
};

/// The comparison of two values.
struct Difference {
  std::string name;    ///< "output.0", "grad.fc1.weight" or a node's name
  std::string origin;  ///< origin of a node
  /// Differences other than of values: "dtype: float32 expected, float64 found".
  std::vector<std::string> layout;
  std::string died;  ///< instead of a comparison: how a backend's process ended here (row_of_death); empty: it did not
  /// The first row that differs of those that this one is computed from; empty: no value that this node reads differs,
  /// or it is not known (compare_nodes).
  std::string inherited_from;
  bool values_agree = true;
  bool rounding = false;  ///< outside the tolerance, yet right by the run in double (judge_by_baseline)
  /// The expected value is farther from the run in double than rounding explains (judge_both_sides).
  bool expected_is_off = false;
  std::int64_t numel = 0, wrong = 0;
  double max_abs = 0, max_rel = 0;      ///< over finite pairs
  std::optional<std::int64_t> max_ulp;  ///< set if both have the same floating dtype
  std::optional<WrongElement> first_wrong;
  std::int64_t nan_expected = 0, nan_found = 0, inf_expected = 0, inf_found = 0;
  std::optional<double> cosine;  ///< of the angle between both as vectors; unset when one is zero or not finite
  ErrorHistogram histogram;
  std::optional<double> expected_error, found_error;  ///< largest distance to the f64 baseline, if there is one
  /// The node alone, computed from the expected values of what it reads: the error that is its own.
  struct Own {
    bool ok = true;  ///< within the tolerance, or rounding
    double max_abs = 0, max_rel = 0;
    std::int64_t wrong = 0;
  };
  std::optional<Own> own;
  std::optional<Statistics> expected_statistics, found_statistics;
  /// Only statistics of the found value are known: max_abs is the least error that explains them, and nothing is known
  /// of single elements. A row that is ok() then shows no difference; only equal hashes prove that there is none.
  bool by_statistics = false;

  bool ok() const { return layout.empty() && died.empty() && (values_agree || rounding); }
  bool inherited() const { return !ok() && !inherited_from.empty() && !(own && !own->ok); }
  /// Are there NaNs or infinities on one side only?
  bool specials_differ() const { return nan_expected != nan_found || inf_expected != inf_found; }
};

/// Compares two values. NaN equals NaN. If `strides` is true, also compares the strides of dimensions of size > 1 of
/// non-empty tensors.
Difference compare_values(std::string name, const Value& expected, const Value& found, const Tolerance& tolerance,
                          bool strides = true);

/// Compares a value with one of which only statistics are left.
Difference compare_statistics(std::string name, const Statistics& expected, const Statistics& found,
                              const Tolerance& tolerance);

/// Sets `rounding` if a run in double, `baseline`, shows that elements outside the tolerance are right. Their errors
/// against it, divided by the tolerance and sorted, may each be at most twice the error of the same rank among the
/// expected value's elements, or one tolerance. So one inaccurate element of the expected value excuses one element of
/// the found value, wherever it is. Where one of the three is not finite, the found element must equal the expected one
/// or the baseline. Differences of sizes and dtypes are not excused.
///
/// Returns whether the expected value is right by the same rule, measured by the errors of the found one. If it is not,
/// a caller who does not know that it is right must ask whether rounding explains it (judge_both_sides).
[[nodiscard]] bool judge_by_baseline(Difference& d, const Value& baseline, const Value& expected, const Value& found,
                                     const Tolerance& tolerance);

struct Report {
  std::string expected_name, found_name;  ///< "io.safetensors", "cpu"
  std::vector<Difference> rows;           ///< in graph order
  std::string graph;                      ///< "forward", "backward", "results" of the program; empty: there is but one
  double seconds = 0;       ///< to compile and run the graph once as it is (compare_columns); 0: not measured
  std::string why_not_own;  ///< why no row has its own error; empty: they have, or nobody asked
  /// Rows, or outputs of a graph, in which a second run of the found side gave other bits; empty: none, or there was no
  /// second run.
  std::vector<std::string> unsteady;
  std::map<std::string, std::string> left_out;  ///< results that one side has no values of to compare, with the reason

  /// Nothing differs beyond the tolerance.
  bool ok() const;
  const Difference* first_bad() const;  ///< in graph order; null when ok
  std::size_t bad() const;              ///< rows that differ
  std::size_t inherited() const;        ///< those of them that inherited it
  /// One line per row, the worst first, what inherited its difference after what did not; at most `limit` rows (0:
  /// all).
  std::string text(std::size_t limit = 0) const;
  std::string json() const;
  /// Reads what json() wrote. Error compare.json for any other text.
  static Result<Report> from_json(std::string_view text);
};

/// What the reports left out, a line for each reason: "output.3 is not compared: beyond the limit of one graph".
std::vector<std::string> not_compared(std::span<const Report> reports);

/// Reports with one expected side as a table: a row for each node that differs in one of them (`all`: for each node), a
/// column for each report, and the first divergence of each. `statistics`: norm, NaNs, infinities and cosine as well.
std::string table_text(std::span<const Report> columns, bool all, bool statistics);

}  // namespace partita
