// GraphView: what mouse and keyboard do to the picture.
#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QMouseEvent>
#include <cmath>

#include "views/look/format.h"
#include "views/look/keys.h"
#include "views/picture/graph_view.h"

namespace partita::views {

int GraphView::card_under(QPointF p) const {
  if (!scene_ || p.y() < kHeadingHeight || p.y() >= height() - legend_strip().height()) return -1;
  QPointF at = to_scene(p);
  return scene_->card_at(static_cast<float>(at.x()), static_cast<float>(at.y()));
}

int GraphView::ribbon_under(QPointF p) const {
  if (!scene_ || !scene_->picture.joint) return -1;
  const QPointF at = to_scene(p);
  const PictureLayout& layout = scene_->layout;
  if (at.x() < layout.cut_left || at.x() > layout.cut_right) return -1;
  constexpr double kNear = 8;
  int best = -1;
  for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
    const double away = std::abs(scene_->cut_y[i] - at.y());
    if (away > kNear || (best >= 0 && away >= std::abs(scene_->cut_y[best] - at.y()))) continue;
    if (scene_->crosses(static_cast<int>(i))) best = static_cast<int>(i);
  }
  return best;
}

void GraphView::choose(int card) {
  if (card < 0 || card == state_.selected) return;
  const Card& chosen = scene_->picture.cards[card];
  state_.selected = card;
  reveal(card);
  update();
  Q_EMIT card_changed();
  Q_EMIT node_chosen(chosen.node ? text(chosen.node->name()) : QString());
}

void GraphView::set_hovered(int card) {
  if (card == state_.hovered) return;
  state_.hovered = card;
  update();
}

void GraphView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton) return;
  drag_from_ = event->position();
  drag_ = overview_box().contains(event->position()) ? Drag::Overview : Drag::Maybe;
  if (drag_ == Drag::Overview) mouseMoveEvent(event);
}

void GraphView::mouseMoveEvent(QMouseEvent* event) {
  QPointF p = event->position();
  if (drag_ == Drag::Overview) {
    QRectF box = overview_box();
    const Box& b = scene_->layout.bounds;
    QPointF middle(b.x + (p.x() - box.x()) / box.width() * b.w, b.y + (p.y() - box.y()) / box.height() * b.h);
    QPointF target = middle - QPointF(width() / 2.0, height() / 2.0) / zoom_;
    if (b.w * zoom_ <= width()) target.setX(origin_.x());
    pan_by((origin_ - target) * zoom_);
    return;
  }
  if (drag_ == Drag::Maybe && (p - drag_from_).manhattanLength() > 4) {
    drag_ = Drag::Pan;
    setCursor(Qt::ClosedHandCursor);
  }
  if (drag_ == Drag::Pan || space_down_) {
    if (drag_ == Drag::Pan) pan_by(p - drag_from_);
    drag_from_ = p;
    return;
  }
  set_hovered(card_under(p));
}

void GraphView::mouseReleaseEvent(QMouseEvent* event) {
  Drag was = drag_;
  drag_ = Drag::None;
  unsetCursor();
  if (was != Drag::Maybe || event->button() != Qt::LeftButton || !scene_) return;
  int card = card_under(event->position());
  if (card < 0) card = ribbon_under(event->position());
  if (card >= 0) return choose(card);
  // Labels of stubs lie just outside their card, so that cards near the pointer are asked too.
  QPointF at = to_scene(event->position());
  if (detail_at(zoom_) == Detail::Full) {
    std::vector<int> cards, links;
    scene_->visible({static_cast<float>(at.x()) - 300, static_cast<float>(at.y()) - 2, 302, 4}, cards, links);
    for (int near : cards)
      for (const StubLabel& label : stub_labels(*scene_, near, state_.detail_font))
        if (label.box.contains(at)) return choose(label.card);
  }
}

void GraphView::ask_fold(int card) {
  const int frame = scene_->picture.cards[card].frame;
  if (frame < 0) return;
  const Box& box = scene_->layout.boxes[card];
  fold_asked_ = {scene_->picture.frames[frame].key, to_view({box.center_x(), box.y})};
  Q_EMIT fold_asked(text(scene_->picture.frames[frame].key));
}

void GraphView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (!scene_) return;
  if (int card = card_under(event->position()); card >= 0) return ask_fold(card);
  QPointF at = to_scene(event->position());
  if (int b = scene_->bracket_at(static_cast<float>(at.x()), static_cast<float>(at.y())); b >= 0) {
    const std::string& frame = scene_->picture.frames[scene_->layout.brackets[b].frame].key;
    fold_asked_ = {frame, {width() / 2.0, event->position().y()}};
    Q_EMIT fold_asked(text(frame));
  }
}

void GraphView::wheelEvent(QWheelEvent* event) {
  QPointF pixels = event->pixelDelta().isNull() ? QPointF(event->angleDelta()) / 2 : QPointF(event->pixelDelta());
  if (event->modifiers() & Qt::ShiftModifier) {
    pan_by(pixels.x() != 0 ? pixels : QPointF(pixels.y(), 0));
  } else if (event->modifiers() & Qt::AltModifier ||
             (!event->pixelDelta().isNull() && !(event->modifiers() & Qt::ControlModifier))) {
    pan_by(pixels);
  } else {
    zoom_by(std::pow(1.0015, event->angleDelta().y()), event->position());
  }
  event->accept();
}

void GraphView::step_along(int key) {
  if (!scene_) return;
  if (state_.selected < 0) return step_in_order(1);
  const PictureLayout& layout = scene_->layout;
  const Box& here = layout.boxes[state_.selected];
  bool forward = scene_->picture.cards[state_.selected].side == Side::Forward;
  bool outgoing = (key == Qt::Key_Down) == forward;
  if (key == Qt::Key_Up || key == Qt::Key_Down) {
    // The linked card most nearly straight above or below.
    int best = -1;
    double best_distance = 0;
    for (int link : outgoing ? scene_->links_from(state_.selected) : scene_->links_to(state_.selected)) {
      int other = outgoing ? scene_->picture.links[link].to : scene_->picture.links[link].from;
      const Box& box = layout.boxes[other];
      bool same_side = scene_->picture.cards[other].side == scene_->picture.cards[state_.selected].side;
      double distance = std::abs(box.center_x() - here.center_x()) + std::abs(box.center_y() - here.center_y()) / 2 +
                        (same_side ? 0 : 1e6) + (scene_->picture.cards[other].family == Family::Input ? 1e5 : 0);
      if (best < 0 || distance < best_distance) best = other, best_distance = distance;
    }
    return choose(best);
  }
  // The nearest card in the row, or across the cut.
  int best = -1;
  double best_distance = 0;
  for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
    const Box& box = layout.boxes[i];
    double dx = box.center_x() - here.center_x();
    if (std::abs(layout.rows[i] - layout.rows[state_.selected]) > 0 || (key == Qt::Key_Right ? dx <= 0 : dx >= 0))
      continue;
    if (best < 0 || std::abs(dx) < best_distance) best = static_cast<int>(i), best_distance = std::abs(dx);
  }
  choose(best);
}

void GraphView::step_in_order(int by) {
  if (!scene_ || scene_->picture.cards.empty()) return;
  int count = static_cast<int>(scene_->picture.cards.size());
  int at = state_.selected < 0 ? (by > 0 ? 0 : count - 1) : (state_.selected + by + count) % count;
  choose(at);
}

void GraphView::keyPressEvent(QKeyEvent* event) {
  const bool tab = event->key() == Qt::Key_Tab || event->key() == Qt::Key_Backtab;
  if (tab && event->modifiers() & Qt::ControlModifier) {
    QWidget::focusNextPrevChild(event->key() == Qt::Key_Tab);
    return;
  }
  if (is_command(*event)) return QWidget::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_F:
      return fit(event->modifiers() & Qt::ShiftModifier ||
                 (scene_ && to_view({0, scene_->layout.bounds.y}).y() >= kHeadingHeight - 1));
    case Qt::Key_Z:
      return zoom_to_selection();
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      return zoom_by(1.25, rect().center());
    case Qt::Key_Minus:
      return zoom_by(0.8, rect().center());
    case Qt::Key_Up:
    case Qt::Key_Down:
    case Qt::Key_Left:
    case Qt::Key_Right:
      if (event->modifiers() & Qt::ShiftModifier) {
        double step = 80;
        return pan_by({event->key() == Qt::Key_Left    ? step
                       : event->key() == Qt::Key_Right ? -step
                                                       : 0,
                       event->key() == Qt::Key_Up     ? step
                       : event->key() == Qt::Key_Down ? -step
                                                      : 0});
      }
      return step_along(event->key());
    case Qt::Key_PageUp:
      return pan_by({0, height() * 0.8});
    case Qt::Key_PageDown:
      return pan_by({0, -height() * 0.8});
    case Qt::Key_Tab:
      return step_in_order(1);
    case Qt::Key_Backtab:
      return step_in_order(-1);
    case Qt::Key_Home:
      return scene_ && !scene_->picture.cards.empty() ? choose(0) : void();
    case Qt::Key_End:
      return scene_ ? choose(static_cast<int>(scene_->picture.cards.size()) - 1) : void();
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (scene_ && state_.selected >= 0) return ask_fold(state_.selected);
      break;
    case Qt::Key_Space:
      space_down_ = true;
      setCursor(Qt::OpenHandCursor);
      return;
    default:
      break;
  }
  QWidget::keyPressEvent(event);
}

void GraphView::keyReleaseEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Space && !event->isAutoRepeat()) {
    space_down_ = false;
    unsetCursor();
  }
  QWidget::keyReleaseEvent(event);
}

bool GraphView::focusNextPrevChild(bool) {
  return false;  // Tab walks nodes; Ctrl+Tab and the keys of the panels leave
}

void GraphView::contextMenuEvent(QContextMenuEvent* event) {
  int card = event->reason() == QContextMenuEvent::Mouse ? card_under(event->pos()) : state_.selected;
  if (card < 0) return;
  choose(card);
  const Card& chosen = scene_->picture.cards[card];
  QMenu menu(this);
  if (chosen.node && scene_->picture.joint && chosen.side == Side::Forward) {
    QString node = text(chosen.node->name());
    menu.addAction(tr("Save for backward\tS"), this, [=, this] { Q_EMIT pin_asked(node, Pin::Save); });
    menu.addAction(tr("Recompute\tR"), this, [=, this] { Q_EMIT pin_asked(node, Pin::Recompute); });
    menu.addAction(tr("Let the partitioner choose\tU"), this, [=, this] { Q_EMIT pin_asked(node, Pin::None); });
    menu.addSeparator();
  }
  if (chosen.frame >= 0)
    menu.addAction(chosen.node ? tr("Fold\tEnter") : tr("Unfold\tEnter"), this, [=, this] { ask_fold(card); });
  menu.addAction(tr("Zoom to it\tZ"), this, [this] { zoom_to_selection(); });
  menu.exec(event->globalPos());
}

}  // namespace partita::views
