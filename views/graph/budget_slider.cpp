#include "views/graph/budget_slider.h"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "views/look/plot.h"
#include "views/picture/sizes.h"

namespace partita::views {
namespace {

constexpr int kRestMs = 200;
constexpr double kHandle = 5, kMargin = 8;

}  // namespace

QString budget_text(const std::vector<BudgetPoint>& curve, double budget, bool sizes_known) {
  QString share = QString("budget %1 %").arg(std::lround(budget * 100));
  auto at = std::ranges::min_element(curve, {}, [&](const BudgetPoint& p) { return std::abs(p.budget - budget); });
  if (at == curve.end()) return share;
  const BudgetPoint& most = curve.back();
  QString text = QString("%1: %2").arg(share, bytes_text(at->activation_bytes));
  if (!sizes_known && most.activation_bytes > 0)
    text = QString("%1: %2 % of the bytes, sizes not known")
               .arg(share)
               .arg(std::lround(100.0 * static_cast<double>(at->activation_bytes) /
                                static_cast<double>(std::max<std::int64_t>(1, most.activation_bytes))));
  else if (std::int64_t less = most.activation_bytes - at->activation_bytes; less != 0)
    text += QString(", %1 %2").arg(bytes_text(std::abs(less)), less > 0 ? "less" : "more");
  const SymExpr more = at->recomputed_operations - most.recomputed_operations;
  if (!more.is_int() || more.as_int() > 0) text += QString(", %1 operations more").arg(operations_text(more));
  return text;
}

BudgetSlider::BudgetSlider(QWidget* parent) : QSlider(Qt::Horizontal, parent) {
  setRange(0, kSteps);
  setPageStep(1);
  setFocusPolicy(Qt::ClickFocus);  // the picture keeps the focus; Ctrl+[ and Ctrl+] move the slider too
  setValue(kSteps);
  setFixedHeight(sizeHint().height());
  setMinimumWidth(70);
  setMaximumWidth(sizeHint().width());
  setAccessibleName(tr("Memory budget"));
  setToolTip(about());
  rest_.setSingleShot(true);
  rest_.setInterval(kRestMs);
  connect(this, &QSlider::valueChanged, this, [this] {
    rest_.start();
    held_.reset();
    Q_EMIT curve_wanted();
    Q_EMIT moved();
  });
  connect(&rest_, &QTimer::timeout, this, [this] { Q_EMIT budget_chosen(budget()); });
}

void BudgetSlider::set_curve(std::vector<BudgetPoint> curve, bool sizes_known) {
  curve_ = std::move(curve);
  sizes_known_ = sizes_known;
  update();
  Q_EMIT moved();
}

void BudgetSlider::set_budget(double budget) {
  QSignalBlocker quiet(this);
  rest_.stop();
  setValue(static_cast<int>(std::lround(budget * kSteps)));
  update();
}

QString BudgetSlider::about() {
  return tr(
      "Memory budget of what the forward keeps for the backward.\n"
      "Right: recompute only what is about free. Left: keep nothing but inputs.\n"
      "The curve: bytes kept at each budget.");
}

void BudgetSlider::set_held(std::optional<double> bytes) {
  held_ = bytes;
  Q_EMIT moved();
}

QString BudgetSlider::text() const {
  QString said = budget_text(curve_, budget(), sizes_known_);
  if (!held_) return said;
  // Before what is left out first where there is little room.
  const qsizetype end = said.indexOf(", ");
  return said.insert(end < 0 ? said.size() : end, tr(", a step %1").arg(bytes_text(static_cast<std::int64_t>(*held_))));
}

double BudgetSlider::x_of(double share) const {
  return kMargin + share * (width() - 2 * kMargin);
}

void BudgetSlider::paintEvent(QPaintEvent*) {
  const Theme& theme = Theme::current();
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  double base = height() - 9, top = 4;
  std::int64_t most = 0;
  for (const BudgetPoint& p : curve_) most = std::max(most, p.activation_bytes);
  if (most > 0) {
    QPolygonF line;
    for (const BudgetPoint& p : curve_)
      line << QPointF(x_of(p.budget),
                      base - (base - top) * static_cast<double>(p.activation_bytes) / static_cast<double>(most));
    QPolygonF area = line;
    area << QPointF(line.back().x(), base) << QPointF(line.front().x(), base);
    QColor fill = theme.accent;
    fill.setAlphaF(0.18f);
    use(painter, Qt::NoPen, fill);
    painter.drawPolygon(area);
    painter.setPen(QPen(theme.accent, 1));
    painter.drawPolyline(line);
  }
  painter.setPen(QPen(theme.line, 2, Qt::SolidLine, Qt::RoundCap));
  painter.drawLine(QPointF(x_of(0), base), QPointF(x_of(1), base));
  QColor ink = isEnabled() ? theme.accent : theme.dim;
  painter.setPen(QPen(ink, 2, Qt::SolidLine, Qt::RoundCap));
  painter.drawLine(QPointF(x_of(0), base), QPointF(x_of(budget()), base));
  painter.setBrush(hasFocus() ? ink : theme.raised);
  painter.drawEllipse(QPointF(x_of(budget()), base), kHandle, kHandle);
}

void BudgetSlider::enterEvent(QEnterEvent* event) {
  Q_EMIT curve_wanted();
  QSlider::enterEvent(event);
}

void BudgetSlider::focusInEvent(QFocusEvent* event) {
  Q_EMIT curve_wanted();
  QSlider::focusInEvent(event);
}

void BudgetSlider::mousePressEvent(QMouseEvent* event) {
  // A click moves the handle to the pointer at once, not by one page; dragging goes on from there.
  double share = (event->position().x() - kMargin) / (width() - 2 * kMargin);
  if (event->button() == Qt::LeftButton) setValue(static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * kSteps)));
  QSlider::mousePressEvent(event);
}

}  // namespace partita::views
