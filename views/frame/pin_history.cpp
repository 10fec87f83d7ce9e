#include "views/frame/pin_history.h"

#include <algorithm>

#include "views/frame/window.h"
#include "views/look/format.h"

namespace partita::views {

PinHistory::PinHistory(Documents& documents, Drawing& drawing, Screen& screen, Window& window)
    : documents_(documents), drawing_(drawing), screen_(screen), window_(window) {
  connect(&screen_, &Screen::showing, this, &PinHistory::refresh_commands);
  connect(&drawing_, &Drawing::drawn, this, [this](const QString& key) {
    if (const Document* current = documents_.current(); current && current->key == key) tell_without_effect(*current);
  });
  connect(&drawing_, &Drawing::pins_refused, this, [this](const Diagnostic& problem) {
    if (std::exchange(tried_, {}).isEmpty()) return drawing_.fail(problem);
    window_.tell(text(problem.message));
  });
}

void PinHistory::add_commands(const Selection& selection) {
  const auto pin_chosen = [this, &selection](Pin to) {
    return [this, &selection, to] { pin(selection.spot().node, to); };
  };
  window_.add_command("Graph", tr("Save the value for the backward"), QKeySequence("S"), pin_chosen(Pin::Save));
  window_.add_command("Graph", tr("Recompute the value in the backward"), QKeySequence("R"),
                      pin_chosen(Pin::Recompute));
  window_.add_command("Graph", tr("Let the partitioner choose the value"), QKeySequence("U"), pin_chosen(Pin::None));
  undo_ = window_.add_command("Edit", tr("Undo the last pin"), QKeySequence::Undo, [this] { undo(); });
  redo_ = window_.add_command("Edit", tr("Redo the pin"), QKeySequence("Ctrl+Shift+Z"), [this] { redo(); });
  refresh_commands();
}

void PinHistory::pin(const QString& node, Pin pin) {
  Document* current = documents_.current();
  if (!current) return;
  if (screen_.shows_step())
    return window_.tell(tr("This is the graph after a pass; pins are of the graph itself (Ctrl+G)"));
  if (const QString why = why_not_pinned(*current, node, pin); !why.isEmpty()) return window_.tell(why);
  Pins pins = current->pins;
  if (pin == Pin::None) {
    pins.erase(node.toStdString());
  } else {
    pins[node.toStdString()] = pin;
  }
  current->earlier_pins.push_back(current->pins);
  current->undone_pins.clear();
  tried_ = node;
  change(std::move(pins));
}

void PinHistory::step(std::vector<Pins> Document::* from, std::vector<Pins> Document::* to) {
  Document* current = documents_.current();
  if (!current || (current->*from).empty()) return;
  (current->*to).push_back(current->pins);
  Pins pins = std::move((current->*from).back());
  (current->*from).pop_back();
  change(std::move(pins));
}

void PinHistory::change(Pins pins) {
  Document& current = *documents_.current();
  current.pins = std::move(pins);
  refresh_commands();
  drawing_.render(current);
}

void PinHistory::refresh_commands() {
  const Document* current = documents_.current();
  undo_->setEnabled(current && !current->earlier_pins.empty());
  redo_->setEnabled(current && !current->undone_pins.empty());
}

// A pin that changes nothing would look like a key that was not heard.
void PinHistory::tell_without_effect(const Document& document) {
  const std::string node = std::exchange(tried_, {}).toStdString();
  const auto pin = document.pins.find(node);
  if (!document.cut || pin == document.pins.end()) return;
  const bool saved = std::ranges::any_of(document.cut->saved, [&](const SavedValue& v) { return v.name == node; });
  const bool again = std::ranges::find(document.cut->recomputed, node) != document.cut->recomputed.end();
  if (pin->second == Pin::Save ? saved : again) return;
  window_.tell(tr("The pin of %1 changes nothing: the backward does not need this value").arg(text(node)));
}

}  // namespace partita::views
