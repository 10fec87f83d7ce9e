#pragma once
#include <QLabel>
#include <QPainter>
#include <QStyle>
#include <algorithm>

namespace partita::views {

/// A label of one line that is cut with an ellipsis where it does not fit; the tooltip shows all of it. With
/// `by_clauses`, what stands behind the last comma or colon that does not fit is left out as a whole.
class ElidedLabel : public QLabel {
 public:
  explicit ElidedLabel(Qt::TextElideMode cut = Qt::ElideRight, bool by_clauses = false)
      : cut_(cut), by_clauses_(by_clauses) {
    setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  }

  void setText(const QString& text) {
    QLabel::setText(text);
    setToolTip(text);
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    const QRect area = contentsRect();
    QString shown = text();
    for (qsizetype end = 0; by_clauses_ && end >= 0 && fontMetrics().horizontalAdvance(shown) > area.width();)
      if (end = std::max(shown.lastIndexOf(", "), shown.lastIndexOf(": ")); end >= 0) shown.truncate(end);
    shown = fontMetrics().elidedText(shown, cut_, area.width());
    style()->drawItemText(&painter, area, Qt::AlignLeft | Qt::AlignVCenter, palette(), isEnabled(), shown,
                          foregroundRole());
  }

 private:
  Qt::TextElideMode cut_;
  bool by_clauses_;
};

}  // namespace partita::views
