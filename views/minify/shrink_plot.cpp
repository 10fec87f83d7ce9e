#include "views/minify/shrink_plot.h"

#include <QPainter>
#include <QPainterPath>
#include <cmath>

#include "views/look/format.h"
#include "views/picture/paint.h"

namespace partita::views {

ShrinkPlot::ShrinkPlot(QWidget* parent) : QWidget(parent) {
  setMinimumHeight(90);
  setAccessibleName(tr("Calls over time"));
}

void ShrinkPlot::set_curve(std::vector<MinifyLog::Point> curve, double seconds) {
  curve_ = std::move(curve);
  seconds_ = seconds;
  update();
}

void ShrinkPlot::paintEvent(QPaintEvent*) {
  PlotPainter painter(this);
  const Theme& theme = Theme::current();
  if (curve_.empty()) return;
  painter.setRenderHint(QPainter::Antialiasing);
  QRectF box = QRectF(rect()).adjusted(44, 8, -12, -20);
  double top = std::log1p(static_cast<double>(curve_.front().calls)), length = std::max(seconds_, 1e-6);
  auto x_of = [&](double seconds) { return box.x() + box.width() * std::min(1.0, seconds / length); };
  auto y_of = [&](std::int64_t calls) {
    return box.bottom() - box.height() * std::log1p(static_cast<double>(calls)) / std::max(top, 1.0);
  };
  painter.setPen(theme.dim);
  double last_label = -1e9;
  for (std::int64_t n : {curve_.front().calls, curve_.back().calls}) {
    double y = y_of(n);
    if (std::abs(y - last_label) < 14) continue;
    last_label = y;
    painter.drawText(QRectF(0, y - 8, 38, 16), Qt::AlignRight | Qt::AlignVCenter, QString::number(n));
  }
  painter.drawText(QRectF(box.x(), box.bottom() + 3, box.width(), 16), Qt::AlignRight | Qt::AlignVCenter,
                   seconds_text(seconds_));
  painter.setPen(theme.line);
  painter.drawLine(box.bottomLeft(), box.bottomRight());
  QPainterPath path(QPointF(box.x(), y_of(curve_.front().calls)));
  for (std::size_t i = 1; i < curve_.size(); ++i) {
    double x = x_of(curve_[i].seconds);
    path.lineTo(x, path.currentPosition().y());
    path.lineTo(x, y_of(curve_[i].calls));
  }
  path.lineTo(box.right(), path.currentPosition().y());
  QPainterPath area = path;
  area.lineTo(box.right(), box.bottom());
  area.lineTo(box.x(), box.bottom());
  QColor fill = theme.accent;
  fill.setAlpha(40);
  painter.fillPath(area, fill);
  painter.setPen(QPen(theme.accent, 1.5));
  painter.drawPath(path);
}

}  // namespace partita::views
