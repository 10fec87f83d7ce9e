#pragma once
#include <QPainter>

#include "views/picture/overlay.h"

namespace partita::views {

constexpr int kLegendHeight = 25;

/// Draws what the colours mean into one row. Entries that do not fit are counted ("+3"). No card lies below the strip.
void paint_legend(QPainter& painter, const QRectF& strip, const Overlay& overlay, const Theme& theme);

}  // namespace partita::views
