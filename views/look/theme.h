#pragma once
#include <QColor>
#include <QFont>
#include <QIcon>
#include <QPalette>
#include <QString>
#include <QStringList>

#include "core/ops/facts/family.h"

namespace partita::views {

/// All colours of the window. There are two instances, light and dark.
struct Theme {
  bool dark = false;
  QColor paper, panel, raised;     ///< background of pictures and text, of docks, of cards and fields
  QColor ink, dim, line;           ///< text, secondary text, rules and borders
  QColor accent;                   ///< selection, links that can be clicked
  QColor forward, backward;        ///< tints of the two halves
  QColor link, far_link;           ///< links; where one is cut, the name of its other end
  QColor input_link, output_link;  ///< links of the selected card
  QColor added, removed, changed;  ///< between two passes
  QColor good, warn, bad;
  QColor keyword, string, number, comment, annotation, current_line;  ///< code
  QColor hover;                                                       ///< a button under the mouse
  QColor shadow;                                                      ///< of what floats over the window
  QColor low, middle, high;                                           ///< of sequential()
  QColor below, calm, above;                                          ///< of diverging()
  QColor not_a_number;                                                ///< not a colour of these ramps

  QColor family(Family family) const;
  QPalette palette() const;
  QString style_sheet() const;

  static const Theme& light();
  static const Theme& night();
  /// The one that everything is painted in. Widgets that keep colours renew them at QEvent::StyleChange.
  static const Theme& current();
  static void set_current(const Theme& theme);
};

enum class ThemeChoice { System, Light, Dark };
/// The chosen theme; for System the one that fits the system's palette.
const Theme& resolve_theme(ThemeChoice choice);

QFont interface_font();  ///< Inter, installed or carried in the program; else the system's
QFont code_font();       ///< JetBrains Mono, likewise; else the system's fixed font
/// A sentence for each of these fonts that is neither installed nor carried, with the one in its place.
QStringList missing_fonts();
QIcon program_icon();

}  // namespace partita::views
