#include "views/tensor/grid_pane.h"

#include <QKeyEvent>
#include <QMouseEvent>

#include "views/look/format.h"
#include "views/look/plot.h"
#include "views/picture/paint.h"

namespace partita::views {
namespace {

constexpr int kPaneMargin = 8, kTitleHeight = 20, kScaleHeight = 30, kLargestCell = 40;

}  // namespace

GridPane::GridPane(Layer layer, QWidget* parent) : QWidget(parent), layer_(layer) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setMinimumSize(120, 120);
  setCursor(Qt::CrossCursor);
}

void GridPane::set_content(const QString& title, std::shared_ptr<const Grid> grid, const TensorColours& colours,
                           double tolerance) {
  title_ = title;
  setAccessibleName(title);
  grid_ = std::move(grid);
  colours_ = colours;
  tolerance_ = tolerance;
  image_ = grid_ ? tensor_image(*grid_, layer_, colours_, Theme::current()) : QImage();
  // What small tensors do not need is room for the histograms.
  const int wanted = kTitleHeight + kScaleHeight + (grid_ ? std::clamp(grid_->rows, 2, 100) : 100) * kLargestCell;
  setMaximumHeight(wanted);
  update();
}

void GridPane::changeEvent(QEvent* event) {
  if (event->type() == QEvent::StyleChange && grid_) image_ = tensor_image(*grid_, layer_, colours_, Theme::current());
  QWidget::changeEvent(event);
}

void GridPane::set_cell(int row, int column) {
  if (row == row_ && column == column_) return;
  row_ = row, column_ = column;
  update();
}

void GridPane::set_marked(int cell) {
  marked_ = cell;
  update();
}

// Square cells if they are large enough to be told apart; else the picture fills the pane.
QRectF GridPane::picture_box() const {
  if (!grid_ || grid_->cells.empty()) return {};
  double w = width() - 2.0 * kPaneMargin, h = height() - kTitleHeight - kScaleHeight;
  double across = w / grid_->columns, down = h / grid_->rows;
  double side = std::min({across, down, double(kLargestCell)});
  constexpr double kTooSmall = 4;
  if (side < kTooSmall) {
    across = std::min(across, double(kLargestCell));
    down = std::min(down, double(kLargestCell));
  } else {
    across = down = side;
  }
  return {double(kPaneMargin), double(kTitleHeight), across * grid_->columns, down * grid_->rows};
}

QRectF GridPane::cell_box(int row, int column) const {
  QRectF box = picture_box();
  double w = box.width() / grid_->columns, h = box.height() / grid_->rows;
  return {box.x() + column * w, box.y() + row * h, w, h};
}

void GridPane::paintEvent(QPaintEvent*) {
  PlotPainter painter(this);
  const Theme& theme = Theme::current();
  painter.setPen(theme.ink);
  draw_elided(painter, QRectF(kPaneMargin, 0, width() - 2 * kPaneMargin, kTitleHeight), title_);
  if (image_.isNull()) return;
  QRectF box = picture_box();
  painter.drawImage(box, image_);  // one pixel per cell, without smoothing, so that cells have edges
  use(painter, theme.line);
  painter.drawRect(box.adjusted(-0.5, -0.5, 0.5, 0.5));
  auto frame = [&](const QRectF& cell, const QColor& colour) {
    QRectF around = cell.adjusted(-1.5, -1.5, 1.5, 1.5);
    painter.setPen(QPen(theme.paper, 3));
    painter.drawRect(around);
    painter.setPen(QPen(colour, 1.5));
    painter.drawRect(around);
  };
  if (marked_ >= 0 && marked_ < static_cast<int>(grid_->cells.size()))
    frame(cell_box(marked_ / grid_->columns, marked_ % grid_->columns), theme.bad);
  if (grid_->at(row_, column_)) frame(cell_box(row_, column_), theme.accent);
  paint_scale(painter);
  if (hasFocus()) {
    painter.setPen(QPen(theme.accent, 1));
    painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
  }
}

void GridPane::paint_scale(QPainter& painter) {
  const Theme& theme = Theme::current();
  bool error = layer_ == Layer::Error;
  double low = error ? colours_.errors.low : colours_.low, high = error ? colours_.errors.high : colours_.high;
  double top = picture_box().bottom() + 8;
  if (error && colours_.errors.empty()) {
    painter.setPen(theme.good);
    painter.drawText(QPointF(kPaneMargin, top + 14), tr("no difference"));
    return;
  }
  QRectF bar(kPaneMargin, top, std::min(width() - 2.0 * kPaneMargin, 220.0), 6);
  if (!error && colours_.signed_values()) {  // symmetric about zero, so that signs are hues
    high = std::max(-low, high);
    low = -high;
  }
  constexpr int kSteps = 64;
  for (int k = 0; k < kSteps; ++k) {
    double t = (k + 0.5) / kSteps;
    QColor colour = error ? colours_.error_colour(t, theme) : colours_.value_colour(low + (high - low) * t, theme);
    painter.fillRect(QRectF(bar.x() + bar.width() * k / kSteps, bar.y(), bar.width() / kSteps + 0.5, bar.height()),
                     colour);
  }
  if (error && tolerance_ >= low && tolerance_ <= high) {
    double x = bar.x() + bar.width() * colours_.errors.at(tolerance_);
    painter.setPen(QPen(theme.ink, 2));
    painter.drawLine(QPointF(x, bar.y() - 3), QPointF(x, bar.bottom() + 3));
  }
  auto number = [&](double v) { return error ? error_text(v) : QString::number(v, 'g', 4); };
  draw_ends(painter, QRectF(bar.x(), bar.bottom() + 1, bar.width(), 15), number(low), number(high));
}

void GridPane::mouseMoveEvent(QMouseEvent* event) {
  QRectF box = picture_box();
  if (!box.contains(event->position())) return;
  Q_EMIT cell_chosen(static_cast<int>((event->position().y() - box.y()) / box.height() * grid_->rows),
                     static_cast<int>((event->position().x() - box.x()) / box.width() * grid_->columns));
}

void GridPane::keyPressEvent(QKeyEvent* event) {
  int down = event->key() == Qt::Key_Down ? 1 : event->key() == Qt::Key_Up ? -1 : 0;
  int right = event->key() == Qt::Key_Right ? 1 : event->key() == Qt::Key_Left ? -1 : 0;
  if ((down == 0 && right == 0) || event->modifiers() != Qt::NoModifier) return QWidget::keyPressEvent(event);
  int row = std::max(0, row_) + (row_ < 0 ? 0 : down), column = std::max(0, column_) + (column_ < 0 ? 0 : right);
  if (grid_ && grid_->at(row, column)) Q_EMIT cell_chosen(row, column);
}

}  // namespace partita::views
