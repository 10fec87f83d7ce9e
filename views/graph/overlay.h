#pragma once
// Colours that say one thing about every card, with the legend that explains them.
#include <QColor>
#include <QString>
#include <string>
#include <unordered_map>
#include <vector>

#include "views/graph/picture.h"
#include "views/look/theme.h"

namespace partita::views {

enum class OverlayKind : unsigned char { None, Bytes, Error, Time, Kernel, Module, Pass };
QString overlay_name(OverlayKind kind);

/// What runs and passes found out about a node. Negative numbers and empty strings: not known.
struct NodeFacts {
  double error = -1;
  double tolerance = -1;  ///< an error above it is marked
  double seconds = -1;
  std::string kernel;
  std::string pass;
};
using Facts = std::unordered_map<std::string, NodeFacts>;  ///< by node name

struct Overlay {
  struct Entry {
    QColor colour;
    QString text;
  };
  OverlayKind kind = OverlayKind::None;
  std::vector<QColor> colours;  ///< by card; invalid: nothing known
  std::vector<bool> marked;     ///< by card: over tolerance, told by a mark as well
  std::vector<QString> texts;   ///< by card: the value, for tooltips
  std::vector<Entry> legend;
};
Overlay make_overlay(OverlayKind kind, const Picture& picture, const Facts& facts, const Theme& theme);

}  // namespace partita::views
