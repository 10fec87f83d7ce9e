#pragma once
#include <QPainter>

#include "views/graph/overlay.h"

namespace partita::views {

constexpr int kLegendHeight = 25;

/// What the colours mean, in one row; entries there is no room for are counted. The strip belongs to the legend alone:
/// no card lies under it.
void paint_legend(QPainter& painter, const QRectF& strip, const Overlay& overlay, const Theme& theme);

}  // namespace partita::views
