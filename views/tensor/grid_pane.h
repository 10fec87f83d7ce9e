#pragma once
#include <QImage>
#include <QWidget>

#include "views/tensor/tensor_image.h"

namespace partita::views {

/// Draws a slice of the expected values, of the found ones or of their errors, with a scale below. The cursor or the
/// arrow keys choose a cell.
class GridPane : public QWidget {
  Q_OBJECT

 public:
  explicit GridPane(Layer layer, QWidget* parent = nullptr);
  void set_content(const QString& title, std::shared_ptr<const Grid> grid, const TensorColours& colours,
                   double tolerance);
  void set_cell(int row, int column);  ///< draws a frame around it; outside the grid: none
  /// Draws a frame and a mark at the first element over tolerance; -1: none.
  void set_marked(int cell);
  QSize sizeHint() const override { return {260, 260}; }

 Q_SIGNALS:
  void cell_chosen(int row, int column);

 protected:
  void paintEvent(QPaintEvent*) override;
  void changeEvent(QEvent* event) override;
  void mouseMoveEvent(QMouseEvent*) override;
  void keyPressEvent(QKeyEvent*) override;

 private:
  QRectF picture_box() const;
  QRectF cell_box(int row, int column) const;
  void paint_scale(QPainter& painter);

  Layer layer_;
  QString title_;
  std::shared_ptr<const Grid> grid_;
  TensorColours colours_;
  double tolerance_ = 0;
  QImage image_;
  int row_ = -1, column_ = -1, marked_ = -1;
};

}  // namespace partita::views
