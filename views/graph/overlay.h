#pragma once
// Colours that say one thing about every card, with the legend that explains them.
#include <QColor>
#include <QString>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "views/graph/picture.h"
#include "views/look/ramp.h"

namespace partita::views {

enum class OverlayKind : unsigned char { None, Bytes, Error, Time, Kernel, Module, Pass };
QString overlay_name(OverlayKind kind);

/// What runs and passes found out about a node. Negative numbers and empty strings: not known.
struct NodeFacts {
  double error = -1;      ///< NaN: NaNs or infinities on one side only
  bool wrong = false;     ///< outside the tolerance
  double tolerance = -1;  ///< absolute part of it
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
  /// What colours of numbers mean.
  struct Ramp {
    LogScale scale;
    QString (*text)(double) = nullptr;
    double mark = -1;  ///< the tolerance; negative: none
  };
  OverlayKind kind = OverlayKind::None;
  std::vector<QColor> colours;  ///< by card; invalid: nothing known
  std::vector<char> marks;      ///< by card, not by colour alone: '!' over tolerance, 'N' not a number, 0 none
  std::vector<QString> texts;   ///< by card: the value, for tooltips
  std::optional<Ramp> ramp;
  std::vector<Entry> legend;  ///< beside the ramp, if there is one
};
Overlay make_overlay(OverlayKind kind, const Picture& picture, const Facts& facts, const Theme& theme);

}  // namespace partita::views
