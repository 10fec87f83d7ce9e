#include "views/tensor/histogram_plot.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <cmath>

#include "views/look/format.h"
#include "views/picture/paint.h"

namespace partita::views {
namespace {

QString number(const Histogram& histogram, double value) {
  return histogram.logarithmic ? error_text(value) : QString::number(value, 'g', 3);
}

double edge(const Histogram& h, int bin) {
  double t = static_cast<double>(bin) / static_cast<double>(h.counts.size());
  return h.logarithmic ? h.low * std::pow(h.high / h.low, t) : h.low + (h.high - h.low) * t;
}

}  // namespace

HistogramPlot::HistogramPlot(QWidget* parent) : QWidget(parent) {
  setMinimumSize(140, 80);
}

void HistogramPlot::set_content(const QString& title, const Histogram& columns, const Histogram& line, double mark,
                                const QString& mark_name) {
  title_ = title;
  columns_ = columns;
  line_ = line;
  mark_ = mark;
  mark_name_ = mark_name;
  setAccessibleName(title);
  update();
}

QRectF HistogramPlot::plot_box() const {
  return QRectF(rect()).adjusted(8, 22, -8, -18);
}

void HistogramPlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Theme& theme = Theme::current();
  painter.fillRect(rect(), theme.paper);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setFont(card_detail_font());
  painter.setPen(theme.ink);
  painter.drawText(QRectF(8, 0, width() - 16, 20), Qt::AlignVCenter,
                   painter.fontMetrics().elidedText(title_, Qt::ElideRight, width() - 16));
  QRectF box = plot_box();
  painter.setPen(theme.line);
  painter.drawLine(box.bottomLeft(), box.bottomRight());
  std::int64_t highest = std::max(columns_.highest(), line_.highest());
  if (highest == 0) {
    painter.setPen(theme.dim);
    painter.drawText(box, Qt::AlignCenter, tr("nothing to count"));
    return;
  }
  auto height_of = [&](std::int64_t count) {
    return box.height() * std::log1p(static_cast<double>(count)) / std::log1p(static_cast<double>(highest));
  };
  auto bins = static_cast<int>(columns_.counts.size());
  double w = box.width() / bins;
  painter.setPen(Qt::NoPen);
  QColor fill = theme.accent;
  fill.setAlpha(110);
  painter.setBrush(fill);
  for (int k = 0; k < bins; ++k) {
    double h = height_of(columns_.counts[static_cast<std::size_t>(k)]);
    if (h > 0) painter.drawRect(QRectF(box.x() + k * w, box.bottom() - h, std::max(1.0, w - 1), h));
  }
  if (!line_.counts.empty()) {
    QPolygonF steps;
    for (int k = 0; k < bins; ++k) {
      double y = box.bottom() - height_of(line_.counts[static_cast<std::size_t>(k)]);
      steps << QPointF(box.x() + k * w, y) << QPointF(box.x() + (k + 1) * w, y);
    }
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme.output_link, 1.3));
    painter.drawPolyline(steps);
  }
  painter.setPen(theme.dim);
  QRectF labels(box.x(), box.bottom() + 2, box.width(), 15);
  painter.drawText(labels, Qt::AlignLeft | Qt::AlignVCenter, number(columns_, columns_.low));
  painter.drawText(labels, Qt::AlignRight | Qt::AlignVCenter, number(columns_, columns_.high));
  if (columns_.bin_of(mark_) >= 0 && columns_.high > columns_.low) {
    double t = std::log(mark_ / columns_.low) / std::log(columns_.high / columns_.low);
    double x = box.x() + t * box.width();
    painter.setPen(QPen(theme.bad, 1.3));
    painter.drawLine(QPointF(x, box.y()), QPointF(x, box.bottom()));
    bool left = x > box.center().x();
    painter.drawText(QRectF(left ? x - 104 : x + 4, box.y() - 2, 100, 14),
                     static_cast<int>((left ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter), mark_name_);
  }
}

bool HistogramPlot::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip || columns_.counts.empty()) return QWidget::event(event);
  auto* help = static_cast<QHelpEvent*>(event);
  QRectF box = plot_box();
  auto bins = static_cast<int>(columns_.counts.size());
  int bin = static_cast<int>(std::floor((help->pos().x() - box.x()) / box.width() * bins));
  if (bin < 0 || bin >= bins) {
    QToolTip::hideText();
    return true;
  }
  QString text = tr("%1 to %2: %3")
                     .arg(number(columns_, edge(columns_, bin)), number(columns_, edge(columns_, bin + 1)))
                     .arg(columns_.counts[static_cast<std::size_t>(bin)]);
  if (!line_.counts.empty()) text += tr(" and %1").arg(line_.counts[static_cast<std::size_t>(bin)]);
  QToolTip::showText(help->globalPos(), text, this);
  return true;
}

}  // namespace partita::views
