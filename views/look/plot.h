#pragma once
// What pictures of numbers have in common.

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include "views/look/theme.h"

namespace partita::views {

/// Pen and brush of what is drawn next.
inline void use(QPainter& painter, const QPen& pen, const QBrush& brush = Qt::NoBrush) {
  painter.setPen(pen);
  painter.setBrush(brush);
}

/// A line of text, cut with an ellipsis where it does not fit.
inline void draw_elided(QPainter& painter, const QRectF& box, const QString& text, int alignment = Qt::AlignVCenter) {
  painter.drawText(box, alignment,
                   painter.fontMetrics().elidedText(text, Qt::ElideRight, static_cast<int>(box.width())));
}

/// The numbers at both ends of a scale.
inline void draw_ends(QPainter& painter, const QRectF& box, const QString& low, const QString& high) {
  painter.setPen(Theme::current().dim);
  painter.drawText(box, Qt::AlignLeft | Qt::AlignVCenter, low);
  painter.drawText(box, Qt::AlignRight | Qt::AlignVCenter, high);
}

/// The frame of what has the keyboard.
inline void draw_focus(QPainter& painter, const QRectF& around) {
  use(painter, QPen(Theme::current().accent, 1));
  painter.drawRect(around.adjusted(0, 0, -1, -1));
}

/// Shows what `tip` says of the place under the pointer, nothing where that is empty. False for events that do not ask.
template <class F>
bool show_tip(QEvent* event, QWidget* of, const F& tip) {
  if (event->type() != QEvent::ToolTip) return false;
  const auto* help = static_cast<QHelpEvent*>(event);
  QToolTip::showText(help->globalPos(), tip(help->pos()), of);
  return true;
}

}  // namespace partita::views
