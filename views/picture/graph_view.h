#pragma once
#include <QPixmap>
#include <QWidget>
#include <map>
#include <memory>

#include "views/picture/paint.h"

namespace partita::views {

/// A module on the way to the chosen card.
struct Crumb {
  QString frame_key, label;
  bool folded = false;
};

/// Shows the picture of a graph, pans and zooms it, and emits signals for what the user chose.
class GraphView : public QWidget {
  Q_OBJECT

 public:
  explicit GraphView(QWidget* parent = nullptr);

  /// Keeps zoom and place with `same_place`, so that a frame that was folded or unfolded stays where it was. Else fits
  /// the picture, or shows its top when the whole would be too small to read.
  void set_scene(std::shared_ptr<const Scene> scene, bool same_place = false);
  const Scene* scene() const { return scene_.get(); }
  void select(const QString& node);  ///< scrolls there when it is out of view
  void set_overlay(OverlayKind kind);
  OverlayKind overlay() const { return overlay_.kind; }
  void set_facts(Facts facts);
  void set_pins(const std::unordered_map<std::string, Pin>& pins);
  void set_notes(const std::map<std::string, QString>& notes);
  /// What happened to each node in the shown pass, by node name.
  void set_changes(const std::unordered_map<std::string, Change>& changes);
  /// Cards that the shown pass removed, drawn faded where they were.
  void set_ghosts(std::vector<Ghost> ghosts);
  void set_search(const QString& text);
  void set_busy(const QString& text);  ///< a quiet line in the middle while the scene is being made; empty: none

  double zoom() const { return zoom_; }
  QPointF to_scene(QPointF p) const { return p / zoom_ + origin_; }
  QPointF to_view(QPointF p) const { return (p - origin_) * zoom_; }
  QString selected_node() const;
  /// The modules that the chosen card is in, the outermost first; a folded module is the last.
  std::vector<Crumb> module_path() const;
  int chosen_module() const;                   ///< the folded frame whose card is chosen; -1: none is
  void ask_fold_of(const QString& frame_key);  ///< fold or unfold; it stays in view
  /// Cards that are wholly in view, by node or folded frame, with their places in this widget.
  std::vector<std::pair<QString, QRectF>> cards_in_view() const;

  QSizeF room() const;  ///< for cards, below the heading and above the legend, in pixels at 100 %
  /// Fits the picture into the view. One that would be too small to read is fitted in width and shown from its top;
  /// `whole` shows all of it.
  void fit(bool whole = false);
  bool is_fitted() const { return fitted_; }  ///< nobody moved or zoomed it since it was opened
  void zoom_to_selection();
  void zoom_by(double factor, QPointF at);

 Q_SIGNALS:
  void node_chosen(QString node);  ///< empty: a folded frame
  void pin_asked(QString node, partita::views::Pin pin);
  void fold_asked(QString frame_key);  ///< fold or unfold
  void card_changed();                 ///< another card is chosen, or none

 protected:
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override;
  void mousePressEvent(QMouseEvent*) override;
  void mouseMoveEvent(QMouseEvent*) override;
  void mouseReleaseEvent(QMouseEvent*) override;
  void mouseDoubleClickEvent(QMouseEvent*) override;
  void wheelEvent(QWheelEvent*) override;
  void keyPressEvent(QKeyEvent*) override;
  void keyReleaseEvent(QKeyEvent*) override;
  void contextMenuEvent(QContextMenuEvent*) override;
  void changeEvent(QEvent*) override;
  void leaveEvent(QEvent*) override;
  bool event(QEvent*) override;
  bool focusNextPrevChild(bool next) override;

 private:
  static constexpr int kHeadingHeight = 26;

  void pan_by(QPointF pixels);
  void stale();  ///< has the cached image drawn anew
  void refresh_cache();
  void keep_fold_in_place();
  void show_some_card();
  void choose(int card);
  void step_along(int key);
  void step_in_order(int by);
  void reveal(int card);
  void paint_headings(QPainter& painter);
  void paint_overview(QPainter& painter);
  QRectF legend_strip() const;
  double picture_height() const;  ///< between heading and legend
  QRectF overview_box() const;
  QRectF scene_area() const { return {to_scene({0, 0}), QSizeF(size()) / zoom_}; }
  int card_under(QPointF p) const;
  int first_card_of(const std::string& frame) const;
  int ribbon_under(QPointF p) const;  ///< the card whose value crosses the cut there; -1: none
  void ask_fold(int card);
  QString tooltip(int card) const;
  QStringList saved_lines(int card) const;
  void set_hovered(int card);
  template <class T, class Of>
  std::vector<T> by_card(const Of& of) const;

  /// The frame that the user asked to fold or unfold, and where on the screen.
  struct FoldAsked {
    std::string frame;
    QPointF at;  ///< middle of the top edge of what was there
  };

  std::shared_ptr<const Scene> scene_;
  PaintState state_;
  Overlay overlay_;
  Facts facts_;
  std::unordered_map<std::string, Pin> pins_;
  std::map<std::string, QString> notes_;
  std::unordered_map<std::string, Change> changes_;
  QString search_, busy_;
  double zoom_ = 1;
  QPointF origin_;  ///< scene coordinates of the view's top left
  QPointF drag_from_;
  std::optional<FoldAsked> fold_asked_;
  enum class Drag { None, Maybe, Pan, Overview } drag_ = Drag::None;
  bool space_down_ = false;
  bool fit_when_shown_ = true;
  bool fitted_ = false;  ///< as it was opened: nobody moved or zoomed it since, so that it follows the view's size
  QPixmap cache_;
  QRegion cache_stale_;  ///< logical pixels
};

}  // namespace partita::views
