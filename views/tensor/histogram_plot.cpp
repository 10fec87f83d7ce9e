#include "views/tensor/histogram_plot.h"

#include <cmath>

#include "views/look/format.h"
#include "views/look/plot.h"
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

void HistogramPlot::paintEvent(QPaintEvent*) {
  PlotPainter painter(this);
  const Theme& theme = Theme::current();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(theme.ink);
  draw_elided(painter, QRectF(8, 0, width() - 16, 20), title_);
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
    use(painter, QPen(theme.output_link, 1.3));
    painter.drawPolyline(steps);
  }
  draw_ends(painter, QRectF(box.x(), box.bottom() + 2, box.width(), 15), number(columns_, columns_.low),
            number(columns_, columns_.high));
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
  const auto tip = [this](QPoint point) {
    const QRectF box = plot_box();
    const auto bins = static_cast<int>(columns_.counts.size());
    const int bin = static_cast<int>(std::floor((point.x() - box.x()) / box.width() * bins));
    if (bin < 0 || bin >= bins) return QString();
    const QString text = tr("%1 to %2: %3")
                             .arg(number(columns_, edge(columns_, bin)), number(columns_, edge(columns_, bin + 1)))
                             .arg(columns_.counts[static_cast<std::size_t>(bin)]);
    return line_.counts.empty() ? text : text + tr(" and %1").arg(line_.counts[static_cast<std::size_t>(bin)]);
  };
  return show_tip(event, this, tip) || QWidget::event(event);
}

}  // namespace partita::views
