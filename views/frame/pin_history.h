#pragma once
#include <QObject>

#include "views/frame/screen.h"

class QAction;

namespace partita::views {

/// Pins values of the current document as saved or recomputed, with undo and redo.
class PinHistory : public QObject {
  Q_OBJECT

 public:
  PinHistory(Documents& documents, Drawing& drawing, Screen& screen, Window& window);

  void add_commands(const Selection& selection);  ///< for the chosen node
  /// Says why where that is not possible or changes nothing.
  void pin(const QString& node, Pin pin);
  void undo();  ///< of the last pin
  void redo();

 private:
  void change(Pins pins);
  void refresh_commands();
  void tell_without_effect(const Document& document);

  Documents& documents_;
  Drawing& drawing_;
  Screen& screen_;
  Window& window_;
  QAction *undo_ = nullptr, *redo_ = nullptr;
  QString tried_;  ///< the node of the pin that is being drawn; empty: none is
};

}  // namespace partita::views
