#pragma once
// Draws a scene with a QPainter. The window, PNG, SVG and PDF files all use it.
#include <QPainter>
#include <QWidget>

#include "views/look/theme.h"
#include "views/picture/overlay.h"
#include "views/picture/scene.h"

namespace partita::views {

enum class Pin : unsigned char { None, Save, Recompute };
enum class Change : unsigned char { None, Added, Changed, Removed };

/// A card of a node that a pass removed.
struct Ghost {
  Box box;
  QString title;
};

struct PaintState {
  const Theme* theme = &Theme::light();
  QFont title_font, detail_font;
  int selected = -1, hovered = -1;
  const Overlay* overlay = nullptr;  ///< null: families
  std::vector<Pin> pins;             ///< by card; empty: none
  std::vector<bool> noted;           ///< by card: the user noted something
  std::vector<Change> changes;       ///< by card, since the previous pass; empty: none
  std::vector<Ghost> ghosts;         ///< of removed cards
  std::vector<bool> found;           ///< by card: search hits; empty: no search
};

/// Measures texts in the fonts of cards; may be called on any thread.
TextWidth measured_text_width(const QFont& title_font, const QFont& detail_font);
QFont card_title_font();
QFont card_detail_font();
/// Paints a plot: on paper, in the font of details.
class PlotPainter : public QPainter {
 public:
  explicit PlotPainter(QWidget* plot) : QPainter(plot) {
    fillRect(plot->rect(), Theme::current().paper);
    setFont(card_detail_font());
  }
};

/// The level of detail at a zoom.
enum class Detail : unsigned char { Blocks, Titles, Full };
Detail detail_at(double zoom);

/// Draws the part within `area` (scene coordinates) with a painter already scaled and moved to them.
void paint_scene(QPainter& painter, const Scene& scene, const PaintState& state, const QRectF& area, double zoom);
/// The same without the selection, for a cached image; paint_selection draws that on top.
void paint_base(QPainter& painter, const Scene& scene, const PaintState& state, const QRectF& area, double zoom);
void paint_selection(QPainter& painter, const Scene& scene, const PaintState& state, const QRectF& area, double zoom);

/// A label of a far link at a card; click goes to the other end.
struct StubLabel {
  QRectF box;     ///< scene coordinates
  int card = -1;  ///< the other end
  int more = 0;   ///< further ends behind it
  QString text;
};
std::vector<StubLabel> stub_labels(const Scene& scene, int card, const QFont& font);

}  // namespace partita::views
