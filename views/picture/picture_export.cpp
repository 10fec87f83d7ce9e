#include "views/picture/picture_export.h"

#include <QBuffer>
#include <QImage>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <algorithm>

#include <fmt/format.h>

#include "views/picture/paint.h"

namespace partita::views {
namespace {

constexpr double kMostPixels = 16000;
constexpr double kMostPoints = 14000;  // a PDF page is at most 14,400 points

void draw(QPainter& painter, const Scene& scene, const Theme& theme, const Overlay* overlay, double scale) {
  PaintState state;
  state.theme = &theme;
  state.title_font = card_title_font();
  state.detail_font = card_detail_font();
  state.overlay = overlay;
  const Box& b = scene.layout.bounds;
  painter.scale(scale, scale);
  painter.translate(-b.x, -b.y);
  // As detailed as on the screen at 100 %, because a reader may zoom into the file.
  paint_scene(painter, scene, state, QRectF(b.x, b.y, b.w, b.h), std::max(1.0, scale));
}

}  // namespace

Result<QByteArray> export_scene(const Scene& scene, const QString& format, const Theme& theme, const Overlay* overlay,
                                double scale) {
  const Box& b = scene.layout.bounds;
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  if (format == "png") {
    scale = std::min({scale, kMostPixels / b.w, kMostPixels / b.h});
    if (scale < 1)  // its letters could not be read
      return input_error("export.size",
                         fmt::format("the picture is {:.0f} x {:.0f} pixels, and a PNG of at most {:.0f} a "
                                     "side would not be readable; export SVG or PDF, or fold modules",
                                     b.w, b.h, kMostPixels));
    QImage image(static_cast<int>(b.w * scale), static_cast<int>(b.h * scale), QImage::Format_RGB32);
    if (image.isNull()) return input_error("export.memory", "the picture does not fit into memory; export SVG");
    QPainter painter(&image);
    draw(painter, scene, theme, overlay, scale);
    painter.end();
    image.save(&buffer, "PNG");
  } else if (format == "svg") {
    QSvgGenerator svg;
    svg.setOutputDevice(&buffer);
    svg.setSize(QSize(static_cast<int>(b.w), static_cast<int>(b.h)));
    svg.setViewBox(QRectF(0, 0, b.w, b.h));
    svg.setTitle(QString::fromStdString(scene.picture.graph->name));
    QPainter painter(&svg);
    draw(painter, scene, theme, overlay, 1);
  } else if (format == "pdf") {
    QPdfWriter pdf(&buffer);
    pdf.setResolution(72);
    double shrink = std::min({1.0, kMostPoints / b.w, kMostPoints / b.h});
    pdf.setPageSize(QPageSize(QSizeF(b.w * shrink, b.h * shrink), QPageSize::Point, QString(), QPageSize::ExactMatch));
    pdf.setPageMargins(QMarginsF(0, 0, 0, 0));
    QPainter painter(&pdf);
    draw(painter, scene, theme, overlay, shrink);
  } else {
    return input_error("export.format",
                       "unknown picture format '" + format.toStdString() + "'; svg, png and pdf are written");
  }
  return bytes;
}

}  // namespace partita::views
