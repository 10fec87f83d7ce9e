#pragma once
#include <QProxyStyle>

namespace partita::views {

/// Fusion, with check marks that take the window's theme: style sheets leave those to the style, which would take the
/// system's palette.
class PlainStyle : public QProxyStyle {
 public:
  PlainStyle();
  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
};

}  // namespace partita::views
