#include "views/graph/graph_view.h"

#include <QAccessible>
#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <cmath>

#include "views/look/format.h"

namespace partita::views {
namespace {

constexpr double kLeastZoom = 0.005, kMostZoom = 4, kReadableZoom = 0.7;
constexpr int kHeadingHeight = 26, kOverviewWidth = 44;

QString text(const std::string& s) {
  return QString::fromUtf8(s.data(), static_cast<int>(s.size()));
}

}  // namespace

GraphView::GraphView(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setAccessibleName(tr("Graph"));
  setMinimumSize(200, 150);
  state_.title_font = card_title_font();
  state_.detail_font = card_detail_font();
}

template <class T, class Of>
std::vector<T> GraphView::by_card(const Of& of) const {
  std::vector<T> result(scene_->picture.cards.size());
  for (std::size_t i = 0; i < result.size(); ++i)
    if (const Node* node = scene_->picture.cards[i].node)
      if (auto found = of.find(node->name()); found != of.end()) result[i] = found->second;
  return result;
}

void GraphView::set_scene(std::shared_ptr<const Scene> scene, bool same_place) {
  QString chosen = selected_node();
  bool had = scene_ != nullptr;
  scene_ = std::move(scene);
  busy_.clear();
  state_.hovered = state_.selected = -1;
  state_.overlay = nullptr;
  state_.pins.clear();
  state_.changes.clear();
  state_.ghosts.clear();
  state_.found.clear();
  if (scene_) {
    set_overlay(overlay_.kind);
    set_pins(pins_);
    set_changes(changes_);
    set_search(search_);
    if (!chosen.isEmpty())
      if (const Node* node = scene_->picture.graph->find(chosen.toStdString()))
        state_.selected = scene_->card_of(*node);
  }
  if (!same_place || !had) fit();
  stale();
}

void GraphView::set_theme(const Theme& theme) {
  state_.theme = &theme;
  if (scene_) set_overlay(overlay_.kind);
  stale();
}

void GraphView::set_overlay(OverlayKind kind) {
  overlay_.kind = kind;
  if (!scene_) return;
  overlay_ = make_overlay(kind, scene_->picture, facts_, *state_.theme);
  state_.overlay = &overlay_;
  stale();
}

void GraphView::set_facts(Facts facts) {
  facts_ = std::move(facts);
  set_overlay(overlay_.kind);
}

void GraphView::set_pins(const std::unordered_map<std::string, Pin>& pins) {
  pins_ = pins;
  if (scene_) state_.pins = by_card<Pin>(pins_);
  stale();
}

void GraphView::set_changes(const std::unordered_map<std::string, Change>& changes) {
  changes_ = changes;
  if (scene_) state_.changes = by_card<Change>(changes_);
  stale();
}

void GraphView::set_ghosts(std::vector<Ghost> ghosts) {
  state_.ghosts = std::move(ghosts);
  stale();
}

void GraphView::set_search(const QString& search) {
  search_ = search;
  state_.found.clear();
  if (scene_ && !search.isEmpty()) {
    state_.found.resize(scene_->picture.cards.size());
    for (std::size_t i = 0; i < state_.found.size(); ++i) {
      const Card& card = scene_->picture.cards[i];
      state_.found[i] = text(card.title).contains(search, Qt::CaseInsensitive) ||
                        (card.node && text(card.node->name()).contains(search, Qt::CaseInsensitive));
    }
  }
  stale();
}

void GraphView::set_busy(const QString& text) {
  busy_ = text;
  update();
}

QString GraphView::selected_node() const {
  if (!scene_ || state_.selected < 0) return {};
  const Node* node = scene_->picture.cards[state_.selected].node;
  return node ? text(node->name()) : QString();
}

void GraphView::select(const QString& name) {
  if (!scene_) return;
  const Node* node = name.isEmpty() ? nullptr : scene_->picture.graph->find(name.toStdString());
  int card = node ? scene_->card_of(*node) : -1;
  if (card == state_.selected) return;
  // The recomputed twin of the chosen node is the same node: stay on it.
  if (state_.selected >= 0 && node && scene_->picture.cards[state_.selected].node == node) return;
  state_.selected = card;
  if (card >= 0) {
    reveal(card);
    setAccessibleDescription(tooltip(card));
    QAccessibleEvent said(this, QAccessible::DescriptionChanged);
    QAccessible::updateAccessibility(&said);
  }
  update();
}

QRectF GraphView::scene_area() const {
  return {to_scene({0, 0}), QSizeF(size()) / zoom_};
}

void GraphView::fit(bool whole) {
  if (!isVisible()) fit_when_shown_ = true;
  if (!scene_) return;
  const Box& b = scene_->layout.bounds;
  double width = std::max(1, this->width() - kOverviewWidth), height = std::max(1, this->height() - kHeadingHeight);
  double all = std::min({width / b.w, height / b.h, 1.25});
  double across = std::clamp(width / b.w, kReadableZoom, 1.0);
  zoom_ = std::clamp(whole || all >= 0.5 ? all : across, kLeastZoom, kMostZoom);
  double middle = scene_->picture.joint ? (scene_->layout.cut_left + scene_->layout.cut_right) / 2 : b.x + b.w / 2;
  origin_.setX((b.w * zoom_ <= width ? b.x + b.w / 2 : middle) - width / 2 / zoom_);
  origin_.setY(b.h * zoom_ <= height ? b.y + b.h / 2 - (height / 2 + kHeadingHeight) / zoom_
                                     : b.y - kHeadingHeight / zoom_);
  stale();
}

void GraphView::zoom_to_selection() {
  if (!scene_ || state_.selected < 0) return;
  const Box& b = scene_->layout.boxes[state_.selected];
  zoom_ = 1;
  origin_ = QPointF(b.center_x(), b.center_y()) - QPointF(width() / 2.0, height() / 2.0) / zoom_;
  stale();
}

void GraphView::zoom_by(double factor, QPointF at) {
  QPointF fixed = to_scene(at);
  zoom_ = std::clamp(zoom_ * factor, kLeastZoom, kMostZoom);
  origin_ = fixed - at / zoom_;
  stale();
}

void GraphView::reveal(int card) {
  const Box& b = scene_->layout.boxes[card];
  QRectF box(to_view({b.x, b.y}), QSizeF(b.w, b.h) * zoom_);
  QRectF inside = QRectF(rect()).adjusted(12, kHeadingHeight + 12, -kOverviewWidth - 12, -12);
  if (zoom_ >= 0.25 && inside.contains(box)) return;
  if (zoom_ < kReadableZoom) zoom_ = kReadableZoom;
  origin_ = QPointF(b.center_x(), b.center_y()) - QPointF((width() - kOverviewWidth) / 2.0, height() / 2.0) / zoom_;
  stale();
}

void GraphView::stale() {
  cache_ = QPixmap();
  update();
}

void GraphView::pan_by(QPointF pixels) {
  double ratio = devicePixelRatioF();
  QPoint device((pixels * ratio).toPoint());
  if (device.isNull()) return;
  origin_ -= QPointF(device) / ratio / zoom_;
  if (!cache_.isNull()) {
    QRegion exposed;
    cache_.scroll(device.x(), device.y(), cache_.rect(), &exposed);
    for (const QRect& r : exposed)
      cache_stale_ +=
          QRectF(QPointF(r.topLeft()) / ratio, QSizeF(r.size()) / ratio).toAlignedRect().adjusted(-1, -1, 1, 1);
  }
  update();
}

void GraphView::refresh_cache() {
  double ratio = devicePixelRatioF();
  QSize wanted = (QSizeF(size()) * ratio).toSize();
  if (cache_.size() != wanted) {
    cache_ = QPixmap(wanted);
    cache_.setDevicePixelRatio(ratio);
    cache_stale_ = rect();
  }
  if (cache_stale_.isEmpty()) return;
  QPainter painter(&cache_);
  for (const QRect& part : cache_stale_) {
    painter.save();
    painter.setClipRect(part);
    painter.scale(zoom_, zoom_);
    painter.translate(-origin_);
    QRectF area(to_scene(part.topLeft()), QSizeF(part.size()) / zoom_);
    paint_base(painter, *scene_, state_, area, zoom_);
    painter.restore();
  }
  cache_stale_ = {};
}

void GraphView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Theme& theme = *state_.theme;
  if (!scene_) {
    painter.fillRect(rect(), theme.paper);
  } else {
    refresh_cache();
    painter.drawPixmap(0, 0, cache_);
    painter.save();
    painter.scale(zoom_, zoom_);
    painter.translate(-origin_);
    paint_selection(painter, *scene_, state_, scene_area(), zoom_);
    painter.restore();
    paint_headings(painter);
    paint_overview(painter);
    paint_legend(painter);
  }
  if (!busy_.isEmpty()) {
    painter.setPen(theme.dim);
    painter.setFont(interface_font());
    painter.drawText(rect(), Qt::AlignCenter, busy_);
  }
  if (hasFocus()) {
    painter.setPen(QPen(theme.accent, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
  }
}

void GraphView::paint_headings(QPainter& painter) {
  const Picture& picture = scene_->picture;
  const Theme& theme = *state_.theme;
  painter.setFont(card_detail_font());
  painter.fillRect(QRect(0, 0, width(), kHeadingHeight), theme.panel);
  painter.setPen(theme.line);
  painter.drawLine(QPointF(0, kHeadingHeight - 0.5), QPointF(width(), kHeadingHeight - 0.5));
  painter.setPen(theme.dim);
  auto heading = [&](double left, double right, const QString& text, Qt::Alignment align) {
    left = std::max(left, 12.0);
    right = std::min(right, static_cast<double>(width() - 12));
    if (right - left < 24) return;
    QRectF box(left, 0, right - left, kHeadingHeight);
    painter.drawText(box, static_cast<int>(align | Qt::AlignVCenter),
                     painter.fontMetrics().elidedText(text, Qt::ElideRight, static_cast<int>(box.width())));
  };
  if (!picture.joint) {
    heading(
        0, width(),
        QString("%1 · %2").arg(text(picture.graph->name), count_text(static_cast<int>(picture.graph->size()), "node")),
        Qt::AlignLeft);
    return;
  }
  int counts[2] = {0, 0}, again = 0;
  for (const Card& card : picture.cards) {
    counts[static_cast<int>(card.side)] += card.again ? 0 : card.nodes;
    again += card.again;
  }
  double left = to_view({scene_->layout.cut_left, 0}).x(), right = to_view({scene_->layout.cut_right, 0}).x();
  QString saved = QString("%1 saved · %2").arg(picture.saved.size()).arg(bytes_text(picture.saved_bytes()));
  double need = painter.fontMetrics().horizontalAdvance(saved) + 24;
  double middle = std::clamp((left + right) / 2, need / 2, width() - need / 2);
  heading(0, middle - need / 2, QString("forward · %1").arg(count_text(counts[0], "node")), Qt::AlignLeft);
  painter.setPen(theme.ink);
  heading(middle - need / 2, middle + need / 2, saved, Qt::AlignHCenter);
  painter.setPen(theme.dim);
  QString backward = QString("backward · %1").arg(count_text(counts[1], "node"));
  if (again > 0) backward += QString(" · %1 recomputed").arg(again);
  heading(middle + need / 2, width(), backward, Qt::AlignRight);
}

QRectF GraphView::overview_box() const {
  if (!scene_) return {};
  const Box& b = scene_->layout.bounds;
  if (b.h * zoom_ <= height() - kHeadingHeight && b.w * zoom_ <= width()) return {};
  double room_h = height() - kHeadingHeight - 16, room_w = kOverviewWidth - 12;
  double h = std::min(room_h, std::max(40.0, b.h * (room_w / b.w)));
  return {width() - kOverviewWidth + 6.0, kHeadingHeight + 8.0, room_w, h};
}

void GraphView::paint_overview(QPainter& painter) {
  QRectF box = overview_box();
  if (box.isEmpty()) return;
  const Theme& theme = *state_.theme;
  const Box& b = scene_->layout.bounds;
  double sx = box.width() / b.w, sy = box.height() / b.h;
  painter.setPen(theme.line);
  painter.setBrush(theme.paper);
  painter.drawRect(box.adjusted(-3, -3, 3, 3));
  painter.setClipRect(box);
  painter.setRenderHint(QPainter::Antialiasing, false);
  for (std::size_t i = 0; i < scene_->layout.boxes.size(); ++i) {
    const Card& card = scene_->picture.cards[i];
    if (card.minor) continue;
    const Box& c = scene_->layout.boxes[i];
    QColor colour = overlay_.kind != OverlayKind::None && overlay_.colours[i].isValid() ? overlay_.colours[i]
                                                                                        : theme.family(card.family);
    painter.fillRect(QRectF(box.x() + (c.x - b.x) * sx, box.y() + (c.y - b.y) * sy, std::max(1.5, c.w * sx),
                            std::max(1.0, c.h * sy)),
                     colour);
  }
  QRectF seen = scene_area();
  painter.setPen(QPen(theme.accent, 1));
  painter.setBrush(QColor(theme.accent.red(), theme.accent.green(), theme.accent.blue(), 30));
  painter.drawRect(QRectF(box.x() + (seen.x() - b.x) * sx, box.y() + (seen.y() - b.y) * sy, seen.width() * sx,
                          std::max(3.0, seen.height() * sy)));
  if (state_.selected >= 0) {
    const Box& c = scene_->layout.boxes[state_.selected];
    painter.fillRect(QRectF(box.x(), box.y() + (c.center_y() - b.y) * sy - 1, box.width(), 2), theme.accent);
  }
  painter.setClipping(false);
}

void GraphView::paint_legend(QPainter& painter) {
  if (overlay_.legend.empty()) return;
  const Theme& theme = *state_.theme;
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setFont(card_detail_font());
  QFontMetricsF metrics(painter.font());
  // Left bottom, one row, as many entries as there is room for; what is left out is counted.
  constexpr double kWidestEntry = 130;
  auto elided = [&](const QString& text) { return metrics.elidedText(text, Qt::ElideRight, kWidestEntry); };
  auto left_out = [&](std::size_t shown) { return QString("+%1").arg(overlay_.legend.size() - shown); };
  double x = 12, y = height() - 30;
  double room = width() - kOverviewWidth - 24;
  double total = metrics.horizontalAdvance(overlay_name(overlay_.kind)) + 20;
  std::size_t fits = 0;
  for (; fits < overlay_.legend.size(); ++fits) {
    double more = metrics.horizontalAdvance(elided(overlay_.legend[fits].text)) + 26;
    double tail = fits + 1 < overlay_.legend.size() ? metrics.horizontalAdvance(left_out(fits + 1)) + 12 : 0;
    if (total + more + tail > room) break;
    total += more;
  }
  if (fits == 0) return;
  QString rest = fits < overlay_.legend.size() ? left_out(fits) : QString();
  if (!rest.isEmpty()) total += metrics.horizontalAdvance(rest) + 12;
  QColor ground = theme.panel;
  ground.setAlpha(235);
  painter.setPen(theme.line);
  painter.setBrush(ground);
  painter.drawRoundedRect(QRectF(x - 0.5, y - 0.5, total, 22), 5, 5);
  painter.setPen(theme.dim);
  painter.drawText(QRectF(x + 8, y, total, 21), Qt::AlignVCenter, overlay_name(overlay_.kind));
  x += metrics.horizontalAdvance(overlay_name(overlay_.kind)) + 20;
  for (std::size_t i = 0; i < fits; ++i) {
    const auto& entry = overlay_.legend[i];
    painter.setPen(Qt::NoPen);
    painter.setBrush(entry.colour.isValid() ? entry.colour : QColor(Qt::transparent));
    painter.drawRoundedRect(QRectF(x, y + 6, 10, 10), 2, 2);
    painter.setPen(theme.ink);
    QString shown = elided(entry.text);
    double w = metrics.horizontalAdvance(shown);
    painter.drawText(QRectF(x + 14, y, w + 2, 21), Qt::AlignVCenter, shown);
    x += w + 26;
  }
  painter.setPen(theme.dim);
  painter.drawText(QRectF(x, y, total, 21), Qt::AlignVCenter, rest);
}

void GraphView::resizeEvent(QResizeEvent* event) {
  if (fit_when_shown_ && isVisible()) {
    fit_when_shown_ = false;
    fit();
  }
  stale();
  QWidget::resizeEvent(event);
}

int GraphView::card_under(QPointF p) const {
  if (!scene_ || p.y() < kHeadingHeight) return -1;
  QPointF at = to_scene(p);
  return scene_->card_at(static_cast<float>(at.x()), static_cast<float>(at.y()));
}

void GraphView::choose(int card) {
  if (card < 0 || card == state_.selected) return;
  const Card& chosen = scene_->picture.cards[card];
  state_.selected = card;
  reveal(card);
  update();
  if (chosen.node) Q_EMIT node_chosen(text(chosen.node->name()));
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
  if (card >= 0) return choose(card);
  // Stub labels lie just outside their card: ask the cards of the neighbourhood.
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
  int frame = scene_->picture.cards[card].frame;
  if (frame >= 0) Q_EMIT fold_asked(text(scene_->picture.frames[frame].key));
}

void GraphView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (!scene_) return;
  if (int card = card_under(event->position()); card >= 0) return ask_fold(card);
  QPointF at = to_scene(event->position());
  if (int b = scene_->bracket_at(static_cast<float>(at.x()), static_cast<float>(at.y())); b >= 0)
    Q_EMIT fold_asked(text(scene_->picture.frames[scene_->layout.brackets[b].frame].key));
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
  const Layout& layout = scene_->layout;
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
  QString node = selected_node();
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
      if (event->modifiers() & Qt::ControlModifier) {
        double step = 80;
        return pan_by({event->key() == Qt::Key_Left    ? step
                       : event->key() == Qt::Key_Right ? -step
                                                       : 0,
                       event->key() == Qt::Key_Up     ? step
                       : event->key() == Qt::Key_Down ? -step
                                                      : 0});
      }
      if (event->modifiers() & Qt::AltModifier) break;
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
    case Qt::Key_S:
      if (event->modifiers() == Qt::NoModifier && !node.isEmpty()) return Q_EMIT pin_asked(node, Pin::Save);
      break;
    case Qt::Key_R:
      if (event->modifiers() == Qt::NoModifier && !node.isEmpty()) return Q_EMIT pin_asked(node, Pin::Recompute);
      break;
    case Qt::Key_U:
      if (event->modifiers() == Qt::NoModifier && !node.isEmpty()) return Q_EMIT pin_asked(node, Pin::None);
      break;
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
  return false;
}  // Tab walks nodes; F6 and Ctrl+Tab leave

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

void GraphView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) stale();
  QWidget::changeEvent(event);
}

void GraphView::leaveEvent(QEvent* event) {
  set_hovered(-1);
  QWidget::leaveEvent(event);
}

QString GraphView::tooltip(int index) const {
  const Card& card = scene_->picture.cards[index];
  QStringList lines;
  if (!card.node) {
    lines << QString("%1: %2, %3").arg(text(card.title), count_text(card.nodes, "node"), bytes_text(card.bytes));
    lines << tr("Enter or double-click unfolds");
    return lines.join('\n');
  }
  QString name = text(card.node->name());
  auto family = family_name(card.family);
  lines << QString("%1 = %2").arg(name, text(card.node->op()->is_call() ? card.node->op()->name : card.title));
  lines << QString("%1  %2, %3")
               .arg(text(annotation(card.node->meta)), bytes_text(card.bytes),
                    QString::fromUtf8(family.data(), static_cast<int>(family.size())));
  for (int s : card.saved) {
    const SavedValue& saved = scene_->picture.saved[s];
    lines << QString("saved for backward: %1, %2%3")
                 .arg(text(saved.name), bytes_text(saved.bytes), saved.why.empty() ? "" : ", " + text(saved.why));
  }
  if (card.again) lines << tr("recomputed in the backward");
  if (overlay_.kind != OverlayKind::None && !overlay_.texts[index].isEmpty())
    lines << overlay_name(overlay_.kind).toLower() + ": " + overlay_.texts[index];
  if (card.node->origin && !card.node->origin->file.empty())
    lines << QString("%1:%2  %3")
                 .arg(text(card.node->origin->file.substr(card.node->origin->file.find_last_of('/') + 1)))
                 .arg(card.node->origin->line)
                 .arg(text(card.node->origin->code));
  return lines.join('\n');
}

bool GraphView::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    auto* help = static_cast<QHelpEvent*>(event);
    int card = card_under(help->pos());
    if (card >= 0) {
      QToolTip::showText(help->globalPos(), tooltip(card), this);
    } else {
      QToolTip::hideText();
      event->ignore();
    }
    return true;
  }
  if (event->type() == QEvent::NativeGesture) {
    auto* gesture = static_cast<QNativeGestureEvent*>(event);
    if (gesture->gestureType() == Qt::ZoomNativeGesture) {
      zoom_by(1 + gesture->value(), gesture->position());
      return true;
    }
  }
  if (event->type() == QEvent::Show && fit_when_shown_) {
    fit_when_shown_ = false;
    fit();
  }
  return QWidget::event(event);
}

}  // namespace partita::views
