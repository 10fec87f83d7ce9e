#pragma once
#include <QWidget>
#include <array>
#include <memory>

#include "views/tensor/grid_pane.h"
#include "views/tensor/histogram_plot.h"

class QComboBox;
class QHBoxLayout;
class QLabel;
class QPushButton;
class QSlider;

namespace partita::views {

/// Shows the values behind one row of a comparison: both sides and their difference, histograms, slices of tensors of
/// higher rank, and the values under the cursor. It asks for slices by a signal.
class TensorView : public QWidget {
  Q_OBJECT

 public:
  static constexpr int kMostCells = 192;  ///< down and across; more elements share a cell

  explicit TensorView(QWidget* parent = nullptr);
  /// Asks for the slice through the first wrong element, else through the worst.
  void set_pair(std::shared_ptr<const TensorPair> pair);
  void set_grid(const Slice& slice, std::shared_ptr<const Grid> grid);
  void set_note(const QString& text);  ///< shown instead of values: why there are none, or that they are being computed

  const TensorPair* pair() const { return pair_.get(); }
  std::shared_ptr<const TensorPair> shared_pair() const { return pair_; }
  const Slice& slice() const { return slice_; }
  const Grid* grid() const { return grid_.get(); }
  QString readout() const;
  void go_to(std::int64_t position);  ///< row-major; changes the slice when the element lies in another
  void choose_cell(int row, int column);

 Q_SIGNALS:
  void slice_asked(const partita::views::Slice& slice);

 private:
  void make_controls();
  void ask(const Slice& slice);
  void choose_dimension(bool rows, int dimension);
  void tell_grid();

  std::shared_ptr<const TensorPair> pair_;
  std::shared_ptr<const Grid> grid_;
  Slice slice_;
  std::int64_t wanted_ = -1;  ///< the element to choose when its slice arrives
  std::array<GridPane*, 3> panes_;
  HistogramPlot *values_, *errors_;
  QLabel *heading_, *verdict_, *readout_;
  QPushButton *first_wrong_, *worst_;
  QHBoxLayout* controls_;
  QWidget *body_, *control_box_ = nullptr;
};

}  // namespace partita::views
