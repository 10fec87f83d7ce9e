#include "views/session/kept_state.h"

#include <QSettings>
#include <QUrl>
#include <algorithm>

#include "views/look/format.h"

namespace partita::views {
namespace {

QString entry_of(const Document& document) {
  return "documents/" + QString::fromLatin1(QUrl::toPercentEncoding(document.key));
}

}  // namespace

void keep_state(const Document& document) {
  if (!document.code) return;  // was never shown
  QVariantMap state, pins;
  for (const auto& [node, pin] : document.pins) pins[QString::fromStdString(node)] = static_cast<int>(pin);
  if (!pins.empty()) state["pins"] = pins;
  if (document.memory_budget) state["budget"] = *document.memory_budget;
  if (document.folding == Folding::Asked) state["folded"] = texts(document.folded);
  if (!document.chosen.isEmpty()) state["chosen"] = document.chosen;
  if (state.empty())
    QSettings().remove(entry_of(document));
  else
    QSettings().setValue(entry_of(document), state);
}

void restore_state(Document& document) {
  const QVariantMap state = QSettings().value(entry_of(document)).toMap();
  if (state.empty()) return;
  for (const auto& [node, pin] : state["pins"].toMap().asKeyValueRange())
    document.pins[node.toStdString()] = pin.toInt() == static_cast<int>(Pin::Save) ? Pin::Save : Pin::Recompute;
  if (state.contains("budget")) document.memory_budget = std::clamp(state["budget"].toDouble(), 0.0, 1.0);
  if (state.contains("folded")) {
    document.folding = Folding::Asked;
    for (const QString& frame : state["folded"].toStringList()) document.folded.insert(frame.toStdString());
  }
  document.chosen = state["chosen"].toString();
  if (!document.pins.empty() || document.memory_budget) document.read.reset();  // was cut without them
}

}  // namespace partita::views
