#include "views/questions/curve_plot.h"

#include <QPainterPath>
#include <algorithm>

#include "views/look/format.h"
#include "views/look/plot.h"
#include "views/picture/paint.h"

namespace partita::views {
namespace {

QString bytes_of(double bytes) {
  return bytes_text(static_cast<std::int64_t>(bytes));
}

QColor colour_of(std::size_t curve) {
  const Theme& theme = Theme::current();
  const QColor colours[] = {theme.accent, theme.warn, theme.good};
  return colours[std::min(curve, std::size(colours) - 1)];
}

double most_of(const QueryCurve& curve) {
  return curve.bytes.empty() ? 0 : std::ranges::max(curve.bytes);
}

}  // namespace

CurvePlot::CurvePlot(QWidget* parent) : QWidget(parent) {
  setMinimumSize(240, 90);
  hide();
}

void CurvePlot::set_curves(std::vector<QueryCurve> curves) {
  curves_ = std::move(curves);
  graphs_.clear();
  QStringList said;
  for (const QueryCurve& curve : curves_) {
    for (const auto& [graph, step] : curve.steps)
      if (std::ranges::find(graphs_, graph) == graphs_.end()) graphs_.push_back(graph);
    said << tr("%1: at most %2").arg(text(curve.name), bytes_of(most_of(curve)));
  }
  setAccessibleName(tr("Memory over the steps. %1").arg(said.join("; ")));
  setVisible(!curves_.empty());
  update();
}

double CurvePlot::most() const {
  double most = 1;
  for (const QueryCurve& curve : curves_) most = std::max(most, most_of(curve));
  return most;
}

double CurvePlot::x_of(const QueryCurve& curve, std::size_t step) const {
  const QRectF area = plot();
  const double wide = area.width() / static_cast<double>(std::max<std::size_t>(1, graphs_.size()));
  if (step >= curve.steps.size()) return area.right();
  const std::string& graph = curve.steps[step].first;
  const auto of_graph = [&](const auto& s) { return s.first == graph; };
  const auto first = std::ranges::find_if(curve.steps, of_graph) - curve.steps.begin();
  const auto count = std::ranges::count_if(curve.steps, of_graph);
  const auto place = std::ranges::find(graphs_, graph) - graphs_.begin();
  return area.x() +
         wide * (static_cast<double>(place) +
                 static_cast<double>(static_cast<std::ptrdiff_t>(step) - first) / static_cast<double>(count));
}

void CurvePlot::paintEvent(QPaintEvent*) {
  PlotPainter painter(this);
  const Theme& theme = Theme::current();
  if (curves_.empty()) return;
  painter.setRenderHint(QPainter::Antialiasing);
  const QRectF area = plot();
  const double most = this->most();
  painter.setPen(theme.line);
  painter.drawLine(area.bottomLeft(), area.bottomRight());
  const double wide = area.width() / static_cast<double>(graphs_.size());
  for (std::size_t g = 0; g < graphs_.size(); ++g) {
    const double x = area.x() + wide * static_cast<double>(g);
    painter.setPen(theme.line);
    if (g > 0) painter.drawLine(QPointF(x, area.y()), QPointF(x, area.bottom()));
    painter.setPen(theme.dim);
    painter.drawText(QRectF(x + 2, area.bottom() + 3, wide - 4, 15), Qt::AlignLeft, text(graphs_[g]));
  }
  for (std::size_t c = 0; c < curves_.size(); ++c) {
    const QueryCurve& curve = curves_[c];
    QPainterPath path;
    for (std::size_t s = 0; s < curve.bytes.size(); ++s) {
      const double y = area.bottom() - area.height() * curve.bytes[s] / most;
      if (s == 0)
        path.moveTo(x_of(curve, s), y);
      else
        path.lineTo(x_of(curve, s), y);
      path.lineTo(x_of(curve, s + 1), y);
    }
    painter.setPen(QPen(colour_of(c), 1.5));
    painter.drawPath(path);
    const QRectF line(12, 4 + 16 * static_cast<double>(c), width() - 24, 16);
    painter.drawLine(QPointF(line.x(), line.center().y()), QPointF(line.x() + 14, line.center().y()));
    painter.setPen(theme.ink);
    draw_elided(painter, line.adjusted(20, 0, 0, 0),
                tr("%1: at most %2").arg(text(curve.name), bytes_of(most_of(curve))));
  }
}

QString CurvePlot::steps_at(double x) const {
  QStringList lines;
  for (const QueryCurve& curve : curves_)
    for (std::size_t s = 0; s < curve.bytes.size(); ++s)
      if (x_of(curve, s) <= x && x < x_of(curve, s + 1)) {
        lines << tr("%1: %2 at step %3 of all, %4")
                     .arg(text(curve.name), bytes_of(curve.bytes[s]))
                     .arg(s)
                     .arg(text(curve.steps[s].second));
        break;
      }
  return lines.join('\n');
}

bool CurvePlot::event(QEvent* event) {
  return show_tip(event, this, [this](QPoint point) { return steps_at(point.x()); }) || QWidget::event(event);
}

}  // namespace partita::views
