#pragma once
// Overlays: one property of every card as its colour, with a legend.
#include <QColor>
#include <QString>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "views/look/ramp.h"
#include "views/picture/picture.h"

namespace partita::views {

/// What the picture can be coloured by; None: the operators' families.
enum class OverlayKind : unsigned char { None, Bytes, Error, Time, Kernel, Module, Pass };

/// What runs and passes found out about a node. Negative numbers and empty strings: not known.
struct NodeFacts {
  double error = -1;           ///< NaN: NaNs or infinities on one side only
  bool wrong = false;          ///< outside the tolerance
  std::string inherited_from;  ///< the node at which its difference began; empty: here, or it has none
  double tolerance = -1;       ///< its absolute part
  double seconds = -1;
  /// Where the seconds are of the user's own run: the compiled kernels that the node is part of, each once with its
  /// whole time. Empty: they are of the interpreter.
  std::vector<std::pair<std::string, double>> kernel_times;
  std::string kernel;
  std::string pass;

  void forget_times();
  /// Adds a kernel's time, unless it is there.
  void add_kernel(const std::string& name, double time);
  /// Adds the times of a node to those of others: a kernel of both counts once.
  void add_times(const NodeFacts& other);
};
using Facts = std::unordered_map<std::string, NodeFacts>;  ///< by node name

std::vector<OverlayKind> overlay_kinds();  ///< in the order of the menu
QString overlay_name(OverlayKind kind);
/// By the first or last word of its name, in any case.
std::optional<OverlayKind> overlay_of(const QString& name);
/// Whether these facts say anything to colour by. Always true of what a graph says itself.
bool overlay_known(OverlayKind kind, const NodeFacts& facts);

struct Overlay {
  struct Entry {
    QColor colour;
    QString text;
  };
  /// The scale, when colours stand for numbers.
  struct Ramp {
    LogScale scale;
    QString (*text)(double) = nullptr;
    double mark = -1;  ///< the tolerance; negative: none
    double from = 0;   ///< of the colours' scale, at the lowest value

    QColor colour(double share, const Theme& theme) const { return sequential(from + (1 - from) * share, theme); }
  };
  OverlayKind kind = OverlayKind::None;
  std::vector<QColor> colours;  ///< by card; invalid: nothing known
  std::vector<char> marks;  ///< by card, so that colour is not needed to see it: '!' over tolerance, '>' after one that
                            ///< is, 'N' not a number, 0 none
  std::vector<QString> texts;  ///< by card: the value, for tooltips
  std::optional<Ramp> ramp;
  std::vector<Entry> legend;  ///< beside the ramp, if there is one
};
Overlay make_overlay(OverlayKind kind, const Picture& picture, const Facts& facts, const Theme& theme);

}  // namespace partita::views
