// Reads two tensors in chunks of doubles, first for extremes, norms and the worst element, then for histograms. Grids
// show a slice, each cell the worst of its elements. Also the texts about them.
#include "views/tensor/tensor_pair.h"

#include <cmath>

#include "core/compare/side_values.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

constexpr std::int64_t kChunk = 1 << 18;
constexpr int kBins = 48;

QString sizes_text(const Sizes& sizes) {
  return "[" + numbers_text(sizes) + "]";
}

bool both_nan(double a, double b) {
  return std::isnan(a) && std::isnan(b);
}

/// Difference over what is allowed; infinite for a NaN or an infinity on one side only.
double badness(double expected, double found, const Tolerance& tolerance) {
  if (expected == found || both_nan(expected, found)) return 0;
  double off = std::abs(found - expected), allowed = tolerance.absolute + tolerance.relative * std::abs(expected);
  if (!std::isfinite(off)) return INFINITY;
  return allowed > 0 ? off / allowed : INFINITY;
}

Result<Tensor> in_double(const Tensor& t, Sizes sizes, Sizes strides, std::int64_t offset) {
  return t.view_as(std::move(sizes), std::move(strides), t.offset + offset).to(DType::Float64);
}

/// Calls each(position, expected, found) for every element.
Status read_through(const TensorPair& pair, const Progress& progress, double from, double to, const auto& each) {
  std::int64_t n = pair.expected.numel();
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    TRY_DO(check_cancelled(&progress));
    progress.at(from + (to - from) * static_cast<double>(begin) / static_cast<double>(n), "reading values");
    std::int64_t count = std::min(kChunk, n - begin);
    TRY(const Tensor a, in_double(pair.expected, {count}, {1}, begin));
    TRY(const Tensor b, in_double(pair.found, {count}, {1}, begin));
    const double *x = a.as<double>(), *y = b.as<double>();
    for (std::int64_t i = 0; i < count; ++i) each(begin + i, x[i], y[i]);
  }
  return {};
}

void add(Histogram& histogram, double value) {
  if (int bin = histogram.bin_of(value); bin >= 0) ++histogram.counts[static_cast<std::size_t>(bin)];
}

/// A slice as rows and columns of elements.
struct SliceLayout {
  std::int64_t rows = 1, columns = 1, row_stride = 0, column_stride = 0, offset = 0;
  std::int64_t elements = 1;  ///< of a wrapped vector: less than rows * columns
};

SliceLayout layout_of(const TensorPair& pair, const Slice& slice) {
  const Sizes& sizes = pair.sizes();
  Sizes strides = row_major_strides(sizes);
  SliceLayout g;
  for (int d = 0; d < static_cast<int>(sizes.size()); ++d) {
    auto k = static_cast<std::size_t>(d);
    if (d == slice.rows) {
      g.rows = sizes[k], g.row_stride = strides[k];
    } else if (d == slice.columns) {
      g.columns = sizes[k], g.column_stride = strides[k];
    } else {
      g.offset += slice.at[k] * strides[k];
    }
  }
  g.elements = g.rows * g.columns;
  constexpr std::int64_t kLongestRow = 64;
  if (slice.rows < 0 && g.columns > kLongestRow) {  // a vector is wrapped, else it would be a thin line
    g.columns = std::max(kLongestRow, static_cast<std::int64_t>(std::ceil(std::sqrt(double(g.elements)))));
    g.rows = (g.elements + g.columns - 1) / g.columns;
    g.row_stride = g.columns * g.column_stride;
  }
  return g;
}

QString over_tolerance(const Difference& d) {
  return d.wrong > 0 ? QString("%1 of %2 over tolerance").arg(d.wrong).arg(d.numel)
                     : QString("all %1 within tolerance").arg(d.numel);
}

/// Norms, the angle between both sides, and what is not finite.
QStringList training_texts(const TensorPair& pair) {
  const Difference& d = pair.difference;
  QStringList parts{QString("norm %1 / %2").arg(pair.expected_norm, 0, 'g', 6).arg(pair.found_norm, 0, 'g', 6)};
  if (std::isfinite(pair.cosine)) parts << QString("cosine %1").arg(pair.cosine, 0, 'g', 8);
  if (d.nan_expected + d.nan_found > 0) parts << QString("NaN %1 / %2").arg(d.nan_expected).arg(d.nan_found);
  if (d.inf_expected + d.inf_found > 0) parts << QString("inf %1 / %2").arg(d.inf_expected).arg(d.inf_found);
  return parts;
}

}  // namespace

int Histogram::bin_of(double value) const {
  if (counts.empty() || !(value >= low && value <= high)) return -1;
  if (high <= low) return 0;
  double t = logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  int bins = static_cast<int>(counts.size());
  return std::clamp(static_cast<int>(t * bins), 0, bins - 1);
}

Result<TensorPair> make_tensor_pair(const QString& name, const Value& expected, const Value& found,
                                    const Tolerance& tolerance, const Progress& progress) {
  const auto *a = expected.get<Tensor>(), *b = found.get<Tensor>();
  if (!a || !b) return input_error("compare.shape", name.toStdString() + " is no tensor; choose another row");
  if (a->sizes != b->sizes)
    return input_error("compare.shape", QString("%1 has sizes %2 here and %3 there; their values cannot be laid over "
                                                "each other")
                                            .arg(name, sizes_text(a->sizes), sizes_text(b->sizes))
                                            .toStdString());
  TensorPair pair;
  pair.name = name;
  pair.tolerance = tolerance;
  pair.type = text(torch_name(a->dtype)) + sizes_text(a->sizes);
  pair.difference = compare_values(name.toStdString(), expected, found, tolerance, false);
  TRY(pair.expected, as_real(*a));
  TRY(pair.found, as_real(*b));
  if (pair.expected.sizes != pair.found.sizes)
    return input_error("compare.dtype", name.toStdString() + " is complex on one side only");
  double low = INFINITY, high = -INFINITY, least = INFINITY, most = 0, worst = 0, ab = 0, aa = 0, bb = 0;
  TRY_DO(read_through(pair, progress, 0, 0.5, [&](std::int64_t position, double x, double y) {
    for (double v : {x, y})
      if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
    double off = std::abs(y - x), bad = badness(x, y, tolerance);
    if (std::isfinite(off)) ab += x * y, aa += x * x, bb += y * y;
    if (off > 0 && std::isfinite(off)) least = std::min(least, off), most = std::max(most, off);
    pair.equal += bad == 0 && !(off > 0);
    if (bad > worst) worst = bad, pair.worst = position;
    if (bad > 1 && pair.first_wrong < 0) pair.first_wrong = position;
  }));
  pair.expected_norm = std::sqrt(aa), pair.found_norm = std::sqrt(bb);
  pair.cosine = aa > 0 && bb > 0 ? ab / std::sqrt(aa) / std::sqrt(bb) : aa == bb ? 1 : NAN;
  if (low <= high) {
    pair.low = low, pair.high = high;
    pair.expected_values = pair.found_values = {low, high, false, std::vector<std::int64_t>(kBins)};
  }
  if (most > 0) pair.errors = {least, most, true, std::vector<std::int64_t>(kBins)};
  TRY_DO(read_through(pair, progress, 0.5, 1, [&](std::int64_t, double x, double y) {
    add(pair.expected_values, x);
    add(pair.found_values, y);
    if (double off = std::abs(y - x); off > 0) add(pair.errors, off);
  }));
  return pair;
}

Slice slice_through(const TensorPair& pair, std::int64_t position) {
  int rank = static_cast<int>(pair.sizes().size());
  return {rank >= 2 ? rank - 2 : -1, rank - 1, index_at(pair.sizes(), position)};
}

Slice slice_through(const TensorPair& pair, std::int64_t position, const Slice& like) {
  Slice slice = slice_through(pair, position);
  int rank = static_cast<int>(pair.sizes().size());
  if (like.at.size() != pair.sizes().size() || like.rows >= rank || like.columns >= rank) return slice;
  slice.rows = like.rows;
  slice.columns = like.columns;
  return slice;
}

const GridCell* Grid::at(int row, int column) const {
  if (row < 0 || column < 0 || row >= rows || column >= columns) return nullptr;
  return &cells[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column)];
}

int Grid::cell_of(std::int64_t position) const {
  auto found = std::ranges::find(cells, position, &GridCell::position);
  return found == cells.end() || position < 0 ? -1 : static_cast<int>(found - cells.begin());
}

Result<std::vector<Grid>> make_grids(std::span<const TensorPair* const> pairs, const Slice& slice, int most_rows,
                                     int most_columns, const Progress& progress) {
  const TensorPair& first = *pairs.front();
  Grid empty;
  if (first.expected.numel() == 0) return std::vector<Grid>(pairs.size(), empty);
  SliceLayout g = layout_of(first, slice);
  auto cells_of = [](std::int64_t elements, int most, std::int64_t& per_cell) {
    per_cell = (elements + most - 1) / most;
    return static_cast<int>((elements + per_cell - 1) / per_cell);
  };
  empty.rows = cells_of(g.rows, std::max(1, most_rows), empty.rows_per_cell);
  empty.columns = cells_of(g.columns, std::max(1, most_columns), empty.columns_per_cell);
  empty.cells.resize(static_cast<std::size_t>(empty.rows) * static_cast<std::size_t>(empty.columns));
  std::vector<Grid> grids(pairs.size(), empty);
  std::vector<double> worst(static_cast<std::size_t>(empty.columns));
  for (std::int64_t r = 0; r < g.rows; ++r) {
    TRY_DO(check_cancelled(&progress));
    std::int64_t count = std::min(g.columns, g.elements - r * g.columns);
    std::int64_t begin = g.offset + r * g.row_stride;
    TRY(const Tensor a, in_double(first.expected, {count}, {g.column_stride}, begin));
    std::vector<Tensor> found;
    for (const TensorPair* pair : pairs) {
      TRY(found.emplace_back(), in_double(pair->found, {count}, {g.column_stride}, begin));
    }
    const double* x = a.as<double>();
    const auto row = static_cast<std::size_t>(r / empty.rows_per_cell * empty.columns);
    if (r % empty.rows_per_cell == 0) std::ranges::fill(worst, -1);
    for (std::int64_t c = 0; c < count; ++c) {
      auto cell = static_cast<std::size_t>(c / empty.columns_per_cell);
      double bad = 0;
      for (const Tensor& b : found) bad = std::max(bad, badness(x[c], b.as<double>()[c], first.tolerance));
      if (bad <= worst[cell]) continue;
      worst[cell] = bad;
      for (std::size_t p = 0; p < pairs.size(); ++p)
        grids[p].cells[row + cell] = {begin + c * g.column_stride, x[c], found[p].as<double>()[c]};
    }
  }
  return grids;
}

QString index_text(const Sizes& sizes, std::int64_t position) {
  return sizes_text(index_at(sizes, position));
}

QString cell_text(const TensorPair& pair, const Grid& grid, const GridCell& cell) {
  if (cell.position < 0) return {};
  double off = std::abs(cell.found - cell.expected);
  double allowed = pair.tolerance.absolute + pair.tolerance.relative * std::abs(cell.expected);
  QString line = QString("%1   %2 %3   %4 %5   difference %6   allowed %7")
                     .arg(index_text(pair.sizes(), cell.position), pair.expected_name)
                     .arg(cell.expected, 0, 'g', 9)
                     .arg(pair.found_name)
                     .arg(cell.found, 0, 'g', 9)
                     .arg(error_text(both_nan(cell.expected, cell.found) || cell.expected == cell.found ? 0 : off),
                          error_text(allowed));
  if (badness(cell.expected, cell.found, pair.tolerance) > 1) line += "   over tolerance";
  if (std::int64_t shared = grid.rows_per_cell * grid.columns_per_cell; shared > 1)
    line += QString("   worst of %1 in this cell").arg(shared);
  return line;
}

QString cells_text(std::span<const TensorPair* const> pairs, std::span<const GridCell> cells) {
  if (cells.front().position < 0) return {};
  QString line = QString("%1   %2 %3")
                     .arg(index_text(pairs.front()->sizes(), cells.front().position), pairs.front()->expected_name)
                     .arg(cells.front().expected, 0, 'g', 9);
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    line += QString("   %1 %2").arg(pairs[p]->found_name).arg(cells[p].found, 0, 'g', 9);
    if (badness(cells[p].expected, cells[p].found, pairs[p]->tolerance) > 1) line += " (over tolerance)";
  }
  return line;
}

QString pair_text(const TensorPair& pair) {
  const Difference& d = pair.difference;
  QStringList parts{over_tolerance(d)};
  parts << QString("largest error %1, relative %2").arg(error_text(d.max_abs), error_text(d.max_rel));
  if (d.max_ulp) parts << QString("%1 ULP").arg(*d.max_ulp);
  parts << QString("%1 equal").arg(pair.equal);
  parts << training_texts(pair) << texts(d.layout);
  return parts.join(", ");
}

QString column_text(const TensorPair& pair) {
  QStringList parts{over_tolerance(pair.difference), "error " + error_text(pair.difference.max_abs)};
  return pair.found_name + ": " + (parts << training_texts(pair)).join(", ");
}

}  // namespace partita::views
