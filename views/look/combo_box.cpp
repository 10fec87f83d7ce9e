#include "views/look/combo_box.h"

#include <QPainter>

namespace partita::views {

void ComboBox::paintEvent(QPaintEvent* event) {
  QComboBox::paintEvent(event);
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(
      QPen(window()->palette().color(QPalette::PlaceholderText), 1.5, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  QPointF middle(width() - 13.0, height() / 2.0 + 0.5);
  painter.drawPolyline(QPolygonF({middle + QPointF(-4, -2), middle + QPointF(0, 2), middle + QPointF(4, -2)}));
}

}  // namespace partita::views
