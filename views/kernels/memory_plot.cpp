#include "views/kernels/memory_plot.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <algorithm>

#include "views/kernels/linked_pane.h"
#include "views/look/format.h"
#include "views/look/plot.h"
#include "views/picture/paint.h"

namespace partita::views {
namespace {

QString bytes_of(double bytes) {
  return bytes_text(static_cast<std::int64_t>(bytes));
}

}  // namespace

MemoryPlot::MemoryPlot(QWidget* parent) : QWidget(parent) {
  setMinimumSize(240, 110);
  setFocusPolicy(Qt::StrongFocus);
}

void MemoryPlot::set_report(const schedule::KernelReport& report) {
  report_ = report;
  step_ = -1;
  const auto peak = report_.peak();
  setAccessibleName(
      peak ? tr("Memory over the steps: at most %1 at step %2").arg(bytes_of(report_.live[*peak])).arg(*peak)
           : tr("Memory over the steps: none"));
  update();
}

void MemoryPlot::set_step(int step) {
  step_ = step;
  update();
}

QRectF MemoryPlot::box_of(const schedule::BufferRow& b) const {
  const QRectF area = plot();
  const double wide = area.width() / static_cast<double>(std::max<std::size_t>(1, report_.rows.size()));
  const double high = area.height() / std::max(1.0, report_.arena_bytes);
  return {area.x() + static_cast<double>(b.first) * wide, area.bottom() - (b.offset + b.bytes) * high,
          static_cast<double>(b.last - b.first + 1) * wide, b.bytes * high};
}

const schedule::BufferRow* MemoryPlot::at(QPointF point) const {
  for (const schedule::BufferRow& b : report_.buffers)
    if (b.kind == schedule::PlanBuffer::Kind::Temporary && b.used && box_of(b).contains(point)) return &b;
  return nullptr;
}

void MemoryPlot::paintEvent(QPaintEvent*) {
  PlotPainter painter(this);
  const Theme& theme = Theme::current();
  const QRectF area = plot();
  const auto peak = report_.peak();
  painter.setPen(theme.ink);
  const QString title = !peak || report_.arena_bytes <= 0
                            ? tr("no temporary memory")
                            : tr("memory over steps: arena of %1, most in use %2 at step %3")
                                  .arg(bytes_of(report_.arena_bytes), bytes_of(report_.live[*peak]))
                                  .arg(*peak);
  draw_elided(painter, QRectF(12, 2, width() - 24, 20), title);
  painter.setPen(theme.line);
  painter.drawLine(area.bottomLeft(), area.bottomRight());
  if (!peak || report_.arena_bytes <= 0) return;
  const double wide = area.width() / static_cast<double>(report_.rows.size());
  const auto column = [&](std::size_t step) {
    return QRectF(area.x() + static_cast<double>(step) * wide, area.y(), std::max(1.0, wide), area.height());
  };
  if (step_ >= 0) painter.fillRect(column(static_cast<std::size_t>(step_)), theme.current_line);
  for (const schedule::BufferRow& b : report_.buffers) {
    if (b.kind != schedule::PlanBuffer::Kind::Temporary || !b.used) continue;
    QRectF box = box_of(b);
    if (box.width() > 2) box.adjust(0.5, 0, -0.5, 0);
    const bool live =
        step_ >= 0 && b.first <= static_cast<std::size_t>(step_) && static_cast<std::size_t>(step_) <= b.last;
    QColor fill = live ? theme.accent : theme.dim;
    fill.setAlpha(live ? 130 : 60);
    painter.fillRect(box, fill);
    if (box.height() >= 4) {
      painter.setPen(theme.paper);
      painter.drawRect(box.adjusted(0, 0, -1, -1));
    }
    if (box.height() >= 14 && box.width() >= 48) {
      painter.setPen(theme.ink);
      draw_elided(painter, box.adjusted(4, 0, -4, 0), text(b.node));
    }
  }
  const QRectF most = column(*peak);
  painter.setPen(QPen(theme.bad, 1, Qt::DashLine));
  painter.drawLine(QPointF(most.center().x(), area.y()), QPointF(most.center().x(), area.bottom()));
  painter.setPen(theme.dim);
  const QRectF labels(area.x(), area.bottom() + 3, area.width(), 15);
  painter.drawText(labels, Qt::AlignLeft, tr("step 0"));
  painter.drawText(labels, Qt::AlignRight, tr("step %1").arg(report_.rows.size() - 1));
  if (hasFocus()) draw_focus(painter, rect());
}

void MemoryPlot::mousePressEvent(QMouseEvent* event) {
  setFocus();
  if (report_.rows.empty()) return;
  const QRectF area = plot();
  const double t = (event->position().x() - area.x()) / area.width();
  const int steps = static_cast<int>(report_.rows.size());
  if (t >= 0 && t < 1) Q_EMIT step_chosen(std::clamp(static_cast<int>(t * steps), 0, steps - 1));
  if (const schedule::BufferRow* b = at(event->position()); b && !b->node.empty()) Q_EMIT node_chosen(text(b->node));
}

void MemoryPlot::keyPressEvent(QKeyEvent* event) {
  const int move = event->key() == Qt::Key_Left ? -1 : event->key() == Qt::Key_Right ? 1 : 0;
  const int next = step_ + move;
  if (move == 0 || next < 0 || next >= static_cast<int>(report_.rows.size())) return QWidget::keyPressEvent(event);
  Q_EMIT step_chosen(next);
}

bool MemoryPlot::event(QEvent* event) {
  const auto tip = [this](QPointF point) {
    const schedule::BufferRow* b = at(point);
    return b ? tr("%1: %2, steps %3 to %4, at %5 of the arena")
                   .arg(text(b->node), bytes_of(b->bytes))
                   .arg(b->first)
                   .arg(b->last)
                   .arg(bytes_of(b->offset))
             : QString();
  };
  return show_tip(event, this, tip) || QWidget::event(event);
}

}  // namespace partita::views
