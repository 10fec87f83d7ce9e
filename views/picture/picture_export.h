#pragma once
#include <QByteArray>
#include <QString>

#include "core/base/result.h"
#include "views/look/theme.h"
#include "views/picture/overlay.h"
#include "views/picture/scene.h"

namespace partita::views {

/// The whole picture as "svg", "png" or "pdf". A PNG is drawn at `scale` and smaller when it would be over 16,000
/// pixels wide or high. Needs a QGuiApplication (offscreen will do), no window.
Result<QByteArray> export_scene(const Scene& scene, const QString& format, const Theme& theme,
                                const Overlay* overlay = nullptr, double scale = 2);

}  // namespace partita::views
