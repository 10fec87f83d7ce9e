// A fixed column of texts at the left, lanes at fixed distances right of it, and rungs at fixed heights, of which only
// the visible ones are painted.
#include "views/ranks/ladder_plot.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <algorithm>

#include "views/look/format.h"
#include "views/look/plot.h"
#include "views/picture/paint.h"

namespace partita::views {
namespace {

constexpr int kTexts = 360, kHeading = 30, kRow = 40, kLeastLane = 120, kMostLane = 280, kMargin = 12;
constexpr double kDot = 4.5;

using Part = RankLadder::Part;

}  // namespace

LadderPlot::LadderPlot(QWidget* parent) : QAbstractScrollArea(parent) {
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::StrongFocus);
  setMinimumSize(240, 120);
  setAccessibleName(tr("Ranks and their collectives"));
}

void LadderPlot::set_ladder(std::shared_ptr<const RankLadder> ladder) {
  ladder_ = std::move(ladder);
  row_ = -1;
  lane_ = 0;
  verticalScrollBar()->setValue(0);
  horizontalScrollBar()->setValue(0);
  setAccessibleDescription(ladder_ ? text(ladder_->summary()) : QString());
  update_scroll_ranges();
  viewport()->update();
}

double LadderPlot::lane_width() const {
  const double room = viewport()->width() - kTexts - kMargin;
  return std::clamp<double>(lanes() > 0 ? room / lanes() : room, kLeastLane, kMostLane);
}

QPointF LadderPlot::place(int row, int lane) const {
  return {kTexts + lane_width() * (lane + 0.5) - horizontalScrollBar()->value(),
          kHeading + kRow * (row + 0.5) - verticalScrollBar()->value()};
}

int LadderPlot::row_at(double y) const {
  const int row = static_cast<int>((y - kHeading + verticalScrollBar()->value()) / kRow);
  return y >= kHeading && row < rows() ? row : -1;
}

int LadderPlot::lane_at(double x) const {
  const int lane = static_cast<int>((x - kTexts + horizontalScrollBar()->value()) / lane_width());
  return std::clamp(lane, 0, std::max(0, lanes() - 1));
}

void LadderPlot::update_scroll_ranges() {
  const int high = viewport()->height() - kHeading - kMargin;
  verticalScrollBar()->setRange(0, std::max(0, rows() * kRow - high));
  verticalScrollBar()->setPageStep(std::max(1, high));
  verticalScrollBar()->setSingleStep(kRow);
  const int wide = viewport()->width() - kTexts - kMargin;
  horizontalScrollBar()->setRange(0, std::max(0, static_cast<int>(lane_width() * lanes()) - wide));
  horizontalScrollBar()->setPageStep(std::max(1, wide));
  horizontalScrollBar()->setSingleStep(kLeastLane);
}

void LadderPlot::resizeEvent(QResizeEvent* event) {
  QAbstractScrollArea::resizeEvent(event);
  update_scroll_ranges();
}

void LadderPlot::choose(int row, int lane) {
  if (row < 0 || row >= rows()) return;
  row_ = row;
  lane_ = std::clamp(lane, 0, lanes() - 1);
  QScrollBar &down = *verticalScrollBar(), &right = *horizontalScrollBar();
  const int top = row * kRow;
  down.setValue(std::clamp(down.value(), top + kRow - down.pageStep(), top));
  const int left = static_cast<int>(lane_width() * lane_), end = static_cast<int>(lane_width() * (lane_ + 1));
  right.setValue(std::clamp(right.value(), std::min(left, end - right.pageStep()), left));
  viewport()->update();
  Q_EMIT chosen();
}

void LadderPlot::choose_next_wrong() {
  for (int i = 1; i <= rows(); ++i) {
    const int row = (std::max(row_, -1) + i) % rows();
    const RankLadder::Row& r = ladder_->rows[static_cast<std::size_t>(row)];
    if (!ladder_->ladder.rungs[r.rung].wrong.empty()) return choose(row, static_cast<int>(ladder_->lane_of(r)));
  }
}

void LadderPlot::paintEvent(QPaintEvent*) {
  PlotPainter painter(viewport());
  const Theme& theme = Theme::current();
  if (!ladder_) return;
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setClipRect(0, kHeading, viewport()->width(), viewport()->height() - kHeading);
  const int first = std::max(0, verticalScrollBar()->value() / kRow);
  const int last = std::min(rows() - 1, first + viewport()->height() / kRow + 1);
  if (row_ >= first && row_ <= last)
    painter.fillRect(QRectF(0, place(row_, 0).y() - kRow / 2.0, viewport()->width(), kRow), theme.current_line);
  paint_lanes(painter);
  for (int row = first; row <= last; ++row) paint_row(painter, row);
  painter.setClipping(false);
  painter.fillRect(QRectF(0, 0, viewport()->width(), kHeading), theme.panel);
  painter.setPen(theme.line);
  painter.drawLine(0, kHeading, viewport()->width(), kHeading);
  painter.setClipRect(kTexts, 0, viewport()->width() - kTexts, kHeading);
  painter.setPen(theme.ink);
  for (int lane = 0; lane < lanes(); ++lane) {
    const QRectF box(place(0, lane).x() - lane_width() / 2 + 4, 0, lane_width() - 8, kHeading);
    draw_elided(painter, box, text(ladder_->lane_name(static_cast<std::size_t>(lane))), Qt::AlignCenter);
  }
  painter.setClipping(false);
  painter.setPen(theme.dim);
  painter.drawText(QRectF(kMargin, 0, kTexts - 2 * kMargin, kHeading), Qt::AlignVCenter, tr("Collectives, in order"));
  if (hasFocus()) draw_focus(painter, viewport()->rect());
}

void LadderPlot::paint_lanes(QPainter& painter) const {
  painter.setPen(QPen(Theme::current().line, 2));
  const double end = place(rows() - 1, 0).y() + kRow / 2.0;
  for (int lane = 0; lane < lanes(); ++lane) {
    const double x = place(0, lane).x();
    if (x >= kTexts) painter.drawLine(QPointF(x, kHeading), QPointF(x, end));
  }
}

void LadderPlot::paint_row(QPainter& painter, int row) const {
  const Theme& theme = Theme::current();
  const RankLadder::Row& r = ladder_->rows[static_cast<std::size_t>(row)];
  const Rung& rung = ladder_->ladder.rungs[r.rung];
  const bool wrong = !rung.wrong.empty();
  const double y = place(row, 0).y();
  const QRectF upper(kMargin, y - 17, kTexts - 2 * kMargin, 17), lower(kMargin, y, kTexts - 2 * kMargin, 17);
  painter.setPen(wrong ? theme.bad : theme.ink);
  draw_elided(painter, upper, text(rung.text));
  painter.setPen(wrong ? theme.bad : theme.dim);
  const QString of_group = r.count > 1 ? tr("number %1 of %2 groups").arg(rung.number).arg(r.count)
                                       : tr("number %1 of group %2").arg(rung.number).arg(text(rung.group));
  draw_elided(painter, lower, wrong ? text(rung.wrong) : of_group);

  painter.save();
  painter.setClipRect(QRectF(kTexts, kHeading, viewport()->width() - kTexts, viewport()->height() - kHeading));
  int first = -1, last = -1;
  for (int lane = 0; lane < lanes(); ++lane)
    if (r.lanes[static_cast<std::size_t>(lane)].part != Part::None) {
      if (first < 0) first = lane;
      last = lane;
    }
  const QColor colour = wrong ? theme.bad : theme.accent;
  painter.setPen(QPen(colour, 2, wrong ? Qt::DashLine : Qt::SolidLine));
  if (first < last) painter.drawLine(place(row, first), place(row, last));
  for (int lane = std::max(first, 0); lane <= last; ++lane) {
    const std::size_t l = static_cast<std::size_t>(lane);
    if (r.lanes[l].part == Part::None) continue;
    const QPointF at = place(row, lane);
    use(painter, QPen(colour, 2), r.lanes[l].part == Part::Starts ? colour : theme.paper);
    const bool is_chosen = row == row_ && lane == lane_;
    painter.drawEllipse(at, is_chosen ? kDot + 2 : kDot, is_chosen ? kDot + 2 : kDot);
    const QRectF label(at.x() + 10, at.y() - 18, lane_width() / 2 - 14, 17);
    const GraphCollective* call = ladder_->call(r, l);
    painter.setPen(call ? theme.dim : theme.bad);
    draw_elided(painter, label, call ? text(call->node->name()) : tr("never"));
  }
  painter.restore();
}

void LadderPlot::mousePressEvent(QMouseEvent* event) {
  setFocus();
  if (const int row = row_at(event->position().y()); row >= 0) choose(row, lane_at(event->position().x()));
}

void LadderPlot::mouseDoubleClickEvent(QMouseEvent* event) {
  if (row_at(event->position().y()) >= 0) Q_EMIT activated();
}

void LadderPlot::keyPressEvent(QKeyEvent* event) {
  const int page = std::max(1, verticalScrollBar()->pageStep() / kRow);
  const int from = std::max(row_, 0);
  switch (event->key()) {
    case Qt::Key_Up:
      return choose(std::max(0, from - 1), lane_);
    case Qt::Key_Down:
      return choose(std::min(rows() - 1, row_ + 1), lane_);
    case Qt::Key_PageUp:
      return choose(std::max(0, from - page), lane_);
    case Qt::Key_PageDown:
      return choose(std::min(rows() - 1, from + page), lane_);
    case Qt::Key_Home:
      return choose(0, lane_);
    case Qt::Key_End:
      return choose(rows() - 1, lane_);
    case Qt::Key_Left:
      return choose(from, lane_ - 1);
    case Qt::Key_Right:
      return choose(from, lane_ + 1);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (row_ >= 0) Q_EMIT activated();
      return;
    default:
      QAbstractScrollArea::keyPressEvent(event);
  }
}

bool LadderPlot::viewportEvent(QEvent* event) {
  const auto tip = [this](QPoint point) {
    const int row = row_at(point.y());
    if (row < 0) return QString();
    const Rung& rung = ladder_->ladder.rungs[ladder_->rows[static_cast<std::size_t>(row)].rung];
    return rung.wrong.empty() ? text(rung.text) : text(rung.text) + "\n" + text(rung.wrong);
  };
  return show_tip(event, this, tip) || QAbstractScrollArea::viewportEvent(event);
}

}  // namespace partita::views
