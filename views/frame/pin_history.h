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
  void undo() { step(&Document::earlier_pins, &Document::undone_pins); }  ///< of the last pin
  void redo() { step(&Document::undone_pins, &Document::earlier_pins); }

 private:
  /// Goes back to the last of `from`, and lets `to` go back from there.
  void step(std::vector<Pins> Document::* from, std::vector<Pins> Document::* to);
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
