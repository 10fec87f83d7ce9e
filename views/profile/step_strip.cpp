#include "views/profile/step_strip.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <algorithm>

#include "views/look/format.h"
#include "views/look/plot.h"
#include "views/picture/paint.h"

namespace partita::views {
namespace {

constexpr int kStripHeight = 92, kStepStripMargin = 12, kStripLabels = 16;
constexpr double kLeastBar = 2;

}  // namespace

StepStrip::StepStrip(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setFixedHeight(kStripHeight);
  setAccessibleName(tr("Steps of the profile"));
}

QSize StepStrip::sizeHint() const {
  return {400, kStripHeight};
}

void StepStrip::set_steps(std::vector<Bar> bars) {
  bars_ = std::move(bars);
  chosen_ = {0, bars_.size()};
  anchor_ = cursor_ = 0;
  update();
}

void StepStrip::choose(StepRange steps) {
  if (steps.from == chosen_.from && steps.to == chosen_.to) return;
  chosen_ = steps;
  setAccessibleDescription(tr("steps %1 to %2 of %3").arg(steps.from + 1).arg(steps.to).arg(bars_.size()));
  update();
  Q_EMIT changed();
}

QRectF StepStrip::area() const {
  return QRectF(rect()).adjusted(kStepStripMargin, 4, -kStepStripMargin, -kStripLabels - 2);
}

QRectF StepStrip::column_of(std::size_t step) const {
  const QRectF room = area();
  const double whole = std::max(bars_.back().end - bars_.front().begin, 1e-9);
  const auto x = [&](double seconds) { return room.x() + (seconds - bars_.front().begin) / whole * room.width(); };
  const double begin = x(bars_[step].begin);
  return {begin, room.y(), std::max(kLeastBar, x(bars_[step].end) - begin), room.height()};
}

std::optional<std::size_t> StepStrip::at(double x) const {
  std::optional<std::size_t> found;
  for (std::size_t s = 0; s < bars_.size(); ++s)
    if (!found || column_of(s).left() <= x) found = s;
  return found;
}

void StepStrip::paintEvent(QPaintEvent*) {
  PlotPainter painter(this);
  const Theme& theme = Theme::current();
  const QRectF room = area();
  painter.setPen(theme.line);
  painter.drawLine(room.bottomLeft(), room.bottomRight());
  if (bars_.empty()) return;
  const double most = std::max(std::ranges::max_element(bars_, {}, &Bar::seconds)->seconds, 1e-12);
  for (std::size_t s = 0; s < bars_.size(); ++s) {
    const bool chosen = s >= chosen_.from && s < chosen_.to;
    const QRectF column = column_of(s);
    if (chosen) painter.fillRect(column, theme.current_line);
    QRectF bar = column;
    bar.setTop(column.bottom() - std::max(1.0, bars_[s].seconds / most * column.height()));
    if (bar.width() > 4) bar.adjust(1, 0, -1, 0);
    QColor fill = chosen ? theme.accent : theme.dim;
    fill.setAlpha(chosen ? 200 : 90);
    painter.fillRect(bar, fill);
    // Not by colour alone: what is chosen has a line below it.
    if (chosen) painter.fillRect(QRectF(column.left(), column.bottom(), column.width(), 3), theme.accent);
    const QString label = QString("%1  %2").arg(bars_[s].name, seconds_text(bars_[s].seconds));
    painter.setPen(chosen ? theme.ink : theme.dim);
    const QRectF below(column.left() + 2, room.bottom() + 4, column.width() - 4, kStripLabels);
    for (const QString& shown : {label, seconds_text(bars_[s].seconds), QString::number(s + 1)})
      if (painter.fontMetrics().horizontalAdvance(shown) <= below.width()) {
        painter.drawText(below, Qt::AlignLeft | Qt::AlignTop, shown);
        break;
      }
  }
  if (hasFocus()) draw_focus(painter, rect());
}

void StepStrip::go_to(std::size_t step, bool extend) {
  if (!extend) anchor_ = step;
  cursor_ = step;
  choose({std::min(anchor_, cursor_), std::max(anchor_, cursor_) + 1});
}

void StepStrip::mousePressEvent(QMouseEvent* event) {
  setFocus();
  if (const auto step = at(event->position().x())) go_to(*step, event->modifiers() & Qt::ShiftModifier);
}

void StepStrip::mouseMoveEvent(QMouseEvent* event) {
  const auto step = at(event->position().x());
  if (step && event->buttons() & Qt::LeftButton) go_to(*step, true);
}

void StepStrip::keyPressEvent(QKeyEvent* event) {
  if (bars_.empty()) return QWidget::keyPressEvent(event);
  const std::size_t last = bars_.size() - 1;
  const bool extend = event->modifiers() & Qt::ShiftModifier;
  if (event->key() == Qt::Key_Left) return go_to(cursor_ - (cursor_ > 0), extend);
  if (event->key() == Qt::Key_Right) return go_to(cursor_ + (cursor_ < last), extend);
  if (event->key() == Qt::Key_Home) return go_to(0, extend);
  if (event->key() == Qt::Key_End) return go_to(last, extend);
  if (event->key() == Qt::Key_A) return choose_all();
  return QWidget::keyPressEvent(event);
}

bool StepStrip::event(QEvent* event) {
  const auto tip = [this](QPoint point) {
    const auto step = at(point.x());
    if (!step) return QString();
    const Bar& bar = bars_[*step];
    return tr("%1: %2, compiled graphs %3").arg(bar.name, seconds_text(bar.end - bar.begin), seconds_text(bar.seconds));
  };
  return show_tip(event, this, tip) || QWidget::event(event);
}

}  // namespace partita::views
