#pragma once

#include <QLabel>
#include <QStringList>
#include <QWidget>
#include <memory>
#include <vector>

#include "views/tensor/grid_pane.h"
#include "views/tensor/histogram_plot.h"

class QComboBox;
class QGridLayout;
class QHBoxLayout;
class QPushButton;
class QSlider;

namespace partita::views {

/// What is known of a row of a comparison.
struct RowValues {
  std::vector<std::shared_ptr<const TensorPair>>
      pairs;            ///< with one expected side, one for each column that has values
  QStringList without;  ///< what is known of the others
};

/// Shows the values behind one row of a comparison: those of all columns side by side and their differences below,
/// histograms, slices of tensors of higher rank, and the values under the cursor. It asks for slices by a signal.
class TensorView : public QWidget {
  Q_OBJECT

 public:
  static constexpr int kMostCells = 192;  ///< down and across; more elements share a cell

  explicit TensorView(QWidget* parent = nullptr);
  /// Asks for the slice through the first wrong element of the first column that has one, else through the worst.
  /// Precondition: there is a pair.
  void set_values(RowValues values);
  void set_grids(const Slice& slice, std::shared_ptr<const std::vector<Grid>> grids);
  void set_note(const QString& text);  ///< shown instead of values: why there are none, or that they are being computed

  /// Of the column whose histograms and verdict are shown; null when there are no values.
  const TensorPair* pair() const { return pairs().empty() ? nullptr : pairs()[current_].get(); }
  const Grid* grid() const { return grids_ ? &(*grids_)[current_] : nullptr; }
  const std::vector<std::shared_ptr<const TensorPair>>& pairs() const { return values_.pairs; }
  const Slice& slice() const { return slice_; }
  QString readout() const { return readout_->text(); }
  QString verdict() const { return verdict_->text(); }
  void go_to(std::int64_t position);  ///< row-major; changes the slice when the element lies in another
  void choose_cell(int row, int column);
  void choose_column(int column);  ///< index of a pair

 Q_SIGNALS:
  void slice_asked(const partita::views::Slice& slice);

 private:
  void make_controls();
  void make_panes();
  void ask(const Slice& slice);
  void choose_dimension(bool rows, int dimension);
  void tell_grid();
  void tell_column();
  std::vector<const TensorPair*> all() const;

  RowValues values_;
  std::shared_ptr<const std::vector<Grid>> grids_;
  std::size_t current_ = 0;
  Slice slice_;
  std::int64_t wanted_ = -1;  ///< the element to choose when its slice arrives
  GridPane* expected_ = nullptr;
  std::vector<GridPane*> found_, errors_;  ///< by pair
  HistogramPlot *value_plot_, *error_plot_;
  QLabel *heading_, *verdict_, *readout_;
  QPushButton *first_wrong_, *worst_;
  QComboBox* column_;
  QWidget* plots_;  ///< the histograms
  QGridLayout* pictures_;
  QHBoxLayout* controls_;
  QWidget *body_, *control_box_ = nullptr;
};

}  // namespace partita::views
