#pragma once
#include <QProxyStyle>

namespace partita::views {

/// Qt's Fusion style with check marks in the colours of the window's theme. A style sheet cannot set these, and Fusion
/// would take them from the system's palette.
class PlainStyle : public QProxyStyle {
 public:
  PlainStyle();
  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
};

}  // namespace partita::views
