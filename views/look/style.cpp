#include "views/look/style.h"

#include <QPainter>
#include <QStyleOption>

namespace partita::views {

PlainStyle::PlainStyle() : QProxyStyle("Fusion") {}

void PlainStyle::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                               const QWidget* widget) const {
  // Fusion's arrow points down for ascending order; other desktops and the web have it the other way round.
  if (const auto* header = qstyleoption_cast<const QStyleOptionHeader*>(option);
      header && element == PE_IndicatorHeaderArrow && header->sortIndicator != QStyleOptionHeader::None) {
    const bool ascending = header->sortIndicator == QStyleOptionHeader::SortDown;
    return QProxyStyle::drawPrimitive(ascending ? PE_IndicatorArrowUp : PE_IndicatorArrowDown, option, painter, widget);
  }
  if (element != PE_IndicatorCheckBox || !widget) return QProxyStyle::drawPrimitive(element, option, painter, widget);
  const QPalette palette = widget->window()->palette();
  bool on = option->state.testFlag(State_On), focused = option->state.testFlag(State_HasFocus);
  QColor accent = palette.color(QPalette::Link);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  QRectF box = QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5);
  painter->setPen(on || focused ? accent : palette.color(QPalette::PlaceholderText));
  painter->setBrush(on ? accent : palette.color(QPalette::Base));
  painter->drawRoundedRect(box, 3, 3);
  if (on) {
    painter->setPen(QPen(palette.color(QPalette::Base), 1.8, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    double w = box.width(), h = box.height();
    painter->drawPolyline(QPolygonF({{box.x() + 0.24 * w, box.y() + 0.54 * h},
                                     {box.x() + 0.43 * w, box.y() + 0.72 * h},
                                     {box.x() + 0.78 * w, box.y() + 0.30 * h}}));
  }
  painter->restore();
}

}  // namespace partita::views
