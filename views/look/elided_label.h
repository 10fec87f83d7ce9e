#pragma once
#include <QLabel>
#include <QPainter>
#include <QStyle>

namespace partita::views {

/// A label of one line that is cut with an ellipsis where it does not fit; the tooltip shows all of it.
class ElidedLabel : public QLabel {
 public:
  explicit ElidedLabel(Qt::TextElideMode cut = Qt::ElideRight) : cut_(cut) {
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
    const QString shown = fontMetrics().elidedText(text(), cut_, area.width());
    style()->drawItemText(&painter, area, Qt::AlignLeft | Qt::AlignVCenter, palette(), isEnabled(), shown,
                          foregroundRole());
  }

 private:
  Qt::TextElideMode cut_;
};

}  // namespace partita::views
