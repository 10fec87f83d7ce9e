#pragma once
#include <QKeyEvent>

namespace partita::views {

/// With Ctrl or Alt a key is a menu's, also while the menu's entry is disabled: Ctrl+Z with nothing to undo is not Z.
/// Only zooming, as in other programs, takes Ctrl.
inline bool is_command(const QKeyEvent& event) {
  const bool zooms = event.key() == Qt::Key_Plus || event.key() == Qt::Key_Equal || event.key() == Qt::Key_Minus;
  return event.modifiers() & (Qt::AltModifier | Qt::MetaModifier) ||
         (event.modifiers() & Qt::ControlModifier && !zooms);
}

}  // namespace partita::views
