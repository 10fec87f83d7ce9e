#include "views/picture/legend.h"

#include <QFontMetricsF>

#include "views/look/plot.h"
#include "views/picture/paint.h"

namespace partita::views {
namespace {

constexpr double kStripMargin = 12, kGap = 14, kRampWidth = 160, kWidestEntry = 190;

struct EntryRow {
  QPainter& painter;
  const QRectF& strip;
  const Theme& theme;
  QFontMetricsF metrics;
  double x;

  double wide(const QString& text) const { return metrics.horizontalAdvance(text); }
  void write(const QString& text, const QColor& colour) {
    painter.setPen(colour);
    painter.drawText(QRectF(x, strip.y(), wide(text) + 2, strip.height()), Qt::AlignVCenter, text);
    x += wide(text);
  }
  void chip(const QColor& colour) {
    use(painter, Qt::NoPen, colour.isValid() ? QBrush(colour) : Qt::NoBrush);
    painter.drawRoundedRect(QRectF(x, strip.center().y() - 5, 10, 10), 2, 2);
    x += 15;
  }

  // Draws the lowest value, the colours with a tick at each power of ten and a mark at the tolerance, and the highest
  // value.
  void ramp(const Overlay::Ramp& ramp) {
    if (ramp.scale.high <= ramp.scale.low) {
      chip(ramp.colour(ramp.scale.at(ramp.scale.high), theme));
      write(ramp.text(ramp.scale.high), theme.ink);
      x += kGap;
      return;
    }
    write(ramp.text(ramp.scale.low), theme.ink);
    x += 6;
    QRectF bar(x, strip.center().y() - 5, kRampWidth, 10);
    constexpr int kSteps = 64;
    for (int k = 0; k < kSteps; ++k)
      painter.fillRect(QRectF(bar.x() + bar.width() * k / kSteps, bar.y(), bar.width() / kSteps + 0.5, bar.height()),
                       ramp.colour((k + 0.5) / kSteps, theme));
    painter.setPen(QPen(theme.panel, 1));
    for (double tick : ramp.scale.ticks(8)) {
      double at = bar.x() + bar.width() * ramp.scale.at(tick);
      painter.drawLine(QPointF(at, bar.bottom() - 3), QPointF(at, bar.bottom()));
    }
    x += kRampWidth + 6;
    write(ramp.text(ramp.scale.high), theme.ink);
    x += kGap;
    if (ramp.mark < 0) return;
    if (ramp.mark >= ramp.scale.low && ramp.mark <= ramp.scale.high) {
      double at = bar.x() + bar.width() * ramp.scale.at(ramp.mark);
      painter.setPen(QPen(theme.ink, 2));
      painter.drawLine(QPointF(at, bar.y() - 3), QPointF(at, bar.bottom() + 3));
    }
    write(QString("tolerance %1").arg(ramp.text(ramp.mark)), theme.dim);
    x += kGap;
  }
};

}  // namespace

void paint_legend(QPainter& painter, const QRectF& strip, const Overlay& overlay, const Theme& theme) {
  if (strip.isEmpty()) return;
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setFont(card_detail_font());
  painter.fillRect(strip, theme.panel);
  painter.setPen(theme.line);
  painter.drawLine(strip.topLeft() + QPointF(0, 0.5), strip.topRight() + QPointF(0, 0.5));
  EntryRow row{painter, strip, theme, QFontMetricsF(painter.font()), strip.x() + kStripMargin};
  painter.setClipRect(strip);
  if (overlay.ramp) row.ramp(*overlay.ramp);
  double end = strip.right() - kStripMargin;
  for (std::size_t i = 0; i < overlay.legend.size(); ++i) {
    QString shown = row.metrics.elidedText(overlay.legend[i].text, Qt::ElideMiddle, kWidestEntry);
    QString rest = i + 1 < overlay.legend.size() ? QString("+%1").arg(overlay.legend.size() - i - 1) : QString();
    double need = 15 + row.wide(shown) + (rest.isEmpty() ? 0 : kGap + row.wide(rest));
    if (row.x + need > end) {
      row.write(QString("+%1").arg(overlay.legend.size() - i), theme.dim);
      break;
    }
    row.chip(overlay.legend[i].colour);
    row.write(shown, theme.ink);
    row.x += kGap;
  }
  painter.setClipping(false);
}

}  // namespace partita::views
