#pragma once
// The values behind a row of a comparison: two tensors and their statistics, without widgets.
#include <QString>
#include <algorithm>
#include <span>
#include <vector>

#include "core/base/progress.h"
#include "core/compare/compare.h"

namespace partita::views {

struct Histogram {
  double low = 0, high = 0;  ///< edges of the first and the last bin; equal: all values are the same
  bool logarithmic = false;
  std::vector<std::int64_t> counts;

  std::int64_t highest() const { return counts.empty() ? 0 : *std::ranges::max_element(counts); }
  int bin_of(double value) const;  ///< -1 outside
};

/// Two tensors of one shape, row-major. Complex ones have a last dimension of real and imaginary part.
struct TensorPair {
  QString name, expected_name, found_name;
  QString type;  ///< "float32[8, 64]"
  Tensor expected, found;
  Tolerance tolerance;
  Difference difference;
  double low = 0, high = 0;                  ///< of the finite values of both
  double expected_norm = 0, found_norm = 0;  ///< roots of the sums of squares, over pairs of finite values
  double cosine = 1;              ///< of the two as vectors, over pairs of finite values; NaN when one vector is zero
  std::int64_t first_wrong = -1;  ///< row-major position; -1: all within the tolerance
  std::int64_t worst = 0;         ///< where the difference is largest against the tolerance
  std::int64_t equal = 0;         ///< pairs without any difference
  Histogram expected_values, found_values;  ///< over the same bins
  Histogram errors;                         ///< of the differences that are not zero

  const Sizes& sizes() const { return expected.sizes; }
};

/// Reads all elements of both tensors. Errors compare.shape when one is no tensor or the sizes differ, compare.dtype
/// for types without arithmetic; Fault::Cancelled.
Result<TensorPair> make_tensor_pair(const QString& name, const Value& expected, const Value& found,
                                    const Tolerance& tolerance, const Progress& progress);

/// Two dimensions of a tensor; all others have a fixed index. A vector is wrapped into rows.
struct Slice {
  int rows = -1, columns = -1;  ///< dimensions drawn downwards and across; -1: none
  Sizes at;                     ///< an index for each dimension; those of rows and columns are not used

  bool operator==(const Slice&) const = default;
};
/// The last two dimensions, through the element at this row-major position.
Slice slice_through(const TensorPair& pair, std::int64_t position);
/// The dimensions of `like`, as far as the tensor has them, through another element.
Slice slice_through(const TensorPair& pair, std::int64_t position, const Slice& like);

/// One element, or the worst of several that share a cell.
struct GridCell {
  std::int64_t position = -1;  ///< row-major; -1: no element here
  double expected = 0, found = 0;
};
struct Grid {
  int rows = 0, columns = 0;
  std::int64_t rows_per_cell = 1, columns_per_cell = 1;
  std::vector<GridCell> cells;  ///< row by row

  const GridCell* at(int row, int column) const;  ///< null outside
  int cell_of(std::int64_t position) const;       ///< -1 when it is not drawn
};
/// A grid for each of some pairs with one expected side. They show the same elements: where several share a cell, the
/// one that is worst in any pair. Error: Fault::Cancelled.
Result<std::vector<Grid>> make_grids(std::span<const TensorPair* const> pairs, const Slice& slice, int most_rows,
                                     int most_columns, const Progress& progress);

/// "[0, 3, 17]".
QString index_text(const Sizes& sizes, std::int64_t position);
/// Both values, their difference and what is allowed, of the element under the cursor.
QString cell_text(const TensorPair& pair, const Grid& grid, const GridCell& cell);
/// The values of that element in all pairs with one expected side, whose cells these are.
QString cells_text(std::span<const TensorPair* const> pairs, std::span<const GridCell> cells);
/// The verdict on the whole pair: largest errors, ULP, cosine, how many elements are wrong, NaNs.
QString pair_text(const TensorPair& pair);
/// The same in one line of several, beginning with the name of the found side.
QString column_text(const TensorPair& pair);

}  // namespace partita::views
