#pragma once
#include <QCoreApplication>
#include <QStatusTipEvent>
#include <QString>

namespace partita::views {

/// Says in the status bar of a widget's window what was done, and where: "Wrote /home/me/joint.svg".
inline void tell(QObject* from, const QString& what) {
  QStatusTipEvent event(what);  // goes up to the window
  QCoreApplication::sendEvent(from, &event);
}

}  // namespace partita::views
