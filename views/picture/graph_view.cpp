// GraphView: its contents, zoom and place, and painting: a cached image of the scene, under the selection, headings,
// overview and legend. Mouse and keyboard are in graph_view_input.cpp.
#include "views/picture/graph_view.h"

#include <QAccessible>
#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "views/look/format.h"
#include "views/look/plot.h"
#include "views/picture/legend.h"
#include "views/picture/sizes.h"

namespace partita::views {
namespace {

constexpr double kLeastZoom = 0.005, kMostZoom = 4, kReadableZoom = 0.7, kReadableWhole = 0.4;
constexpr int kOverviewWidth = 44;

}  // namespace

GraphView::GraphView(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setAccessibleName(tr("Graph"));
  setMinimumSize(200, 150);
  state_.theme = &Theme::current();
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
  const auto folds = [](const Scene& of) { return std::ranges::count_if(of.picture.frames, &Frame::folded); };
  const bool folded_all = scene_ && scene && !fold_asked_ && scene_->picture.graph == scene->picture.graph &&
                          scene_->picture.frames.size() == scene->picture.frames.size() &&  // else the cut changed
                          folds(*scene_) != folds(*scene);
  same_place = same_place && scene_ && !folded_all;
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
    set_notes(notes_);
    set_changes(changes_);
    set_search(search_);
    if (!chosen.isEmpty())
      if (const Node* node = scene_->picture.graph->find(chosen.toStdString()))
        state_.selected = scene_->card_of(*node);
  }
  if (!same_place) fit();
  keep_fold_in_place();
  stale();
  Q_EMIT card_changed();
}

int GraphView::first_card_of(const std::string& frame) const {
  const Picture& picture = scene_->picture;
  if (const int folded = picture.card_by_key("frame:" + frame); folded >= 0) return folded;
  const auto inside = [&](int of) {
    while (of >= 0 && picture.frames[of].key != frame) of = picture.frames[of].parent;
    return of >= 0;
  };
  const auto first =
      std::ranges::find_if(picture.cards, [&](const Card& card) { return !card.again && inside(card.frame); });
  return first == picture.cards.end() ? -1 : static_cast<int>(first - picture.cards.begin());
}

std::vector<Crumb> GraphView::module_path() const {
  std::vector<Crumb> path;
  if (!scene_ || state_.selected < 0) return path;
  const Picture& picture = scene_->picture;
  for (int at = picture.cards[state_.selected].frame; at >= 0; at = picture.frames[at].parent) {
    const Frame& frame = picture.frames[at];
    path.insert(path.begin(), {text(frame.key), text(frame.label), frame.folded});
  }
  return path;
}

int GraphView::chosen_module() const {
  if (!scene_ || state_.selected < 0) return -1;
  const Card& card = scene_->picture.cards[state_.selected];
  return card.node ? -1 : card.frame;
}

void GraphView::ask_fold_of(const QString& frame_key) {
  const int first = scene_ ? first_card_of(frame_key.toStdString()) : -1;
  if (first < 0) return;
  const Box& box = scene_->layout.boxes[first];
  fold_asked_ = {frame_key.toStdString(), to_view({box.center_x(), box.y})};
  Q_EMIT fold_asked(frame_key);
}

// What became of the frame stays under the pointer; it is chosen, so that Enter takes the step back.
void GraphView::keep_fold_in_place() {
  const auto asked = std::exchange(fold_asked_, {});
  if (!asked || !scene_) return;
  fitted_ = false;
  const Picture& picture = scene_->picture;
  const int first = first_card_of(asked->frame);
  if (first < 0) return;
  const Box& box = scene_->layout.boxes[first];
  const QPointF at(std::clamp(asked->at.x(), 40.0, std::max(40.0, width() - 80.0)),
                   std::clamp(asked->at.y(), kHeadingHeight + 8.0, std::max(kHeadingHeight + 8.0, height() - 80.0)));
  origin_ = QPointF(box.center_x(), box.y) - at / zoom_;
  state_.selected = first;
  const Node* node = picture.cards[first].node;
  Q_EMIT node_chosen(node ? text(node->name()) : QString());
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

void GraphView::set_notes(const std::map<std::string, QString>& notes) {
  notes_ = notes;
  state_.noted.clear();
  if (scene_)
    for (const Card& card : scene_->picture.cards)
      state_.noted.push_back(card.node && notes_.contains(card.node->name()));
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
      const auto note = card.node ? notes_.find(card.node->name()) : notes_.end();
      state_.found[i] = text(card.title).contains(search, Qt::CaseInsensitive) ||
                        (card.node && text(card.node->name()).contains(search, Qt::CaseInsensitive)) ||
                        (note != notes_.end() && note->second.contains(search, Qt::CaseInsensitive));
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
  if (card < 0 && state_.selected >= 0 && !scene_->picture.cards[state_.selected].node) return;  // a folded frame stays
  // A recomputed value has two cards for one node: the selection stays on the chosen one.
  if (state_.selected >= 0 && node && scene_->picture.cards[state_.selected].node == node) return;
  state_.selected = card;
  if (card >= 0) {
    reveal(card);
    setAccessibleDescription(tooltip(card));
    QAccessibleEvent said(this, QAccessible::DescriptionChanged);
    QAccessible::updateAccessibility(&said);
  }
  update();
  Q_EMIT card_changed();
}

std::vector<std::pair<QString, QRectF>> GraphView::cards_in_view() const {
  std::vector<std::pair<QString, QRectF>> found;
  if (!scene_) return found;
  const QRectF picture(0, kHeadingHeight, width(), picture_height());
  for (std::size_t i = 0; i < scene_->layout.boxes.size(); ++i) {
    const Box& b = scene_->layout.boxes[i];
    const Card& card = scene_->picture.cards[i];
    const QRectF box(to_view({b.x, b.y}), QSizeF(b.w, b.h) * zoom_);
    if (picture.contains(box)) found.emplace_back(text(card.node ? card.node->name() : card.key), box);
  }
  return found;
}

QRectF GraphView::legend_strip() const {
  double high = overlay_.legend.empty() && !overlay_.ramp ? 0 : kLegendHeight;
  return {0, height() - high, static_cast<double>(width()), high};
}

double GraphView::picture_height() const {
  return height() - kHeadingHeight - legend_strip().height();
}

QSizeF GraphView::room() const {
  constexpr double kHeadingAndLegend = 52;
  return {static_cast<double>(width()), height() - kHeadingAndLegend};
}

void GraphView::fit(bool whole) {
  if (!isVisible()) fit_when_shown_ = true;
  if (!scene_) return;
  const Box& b = scene_->layout.bounds;
  const double height = std::max(1.0, picture_height());
  const double all = std::min({std::max(1, this->width()) / double{b.w}, height / b.h, 1.25});
  const bool fits = whole || all >= kReadableWhole;
  const double width = std::max(1, this->width() - (fits ? 0 : kOverviewWidth));
  zoom_ = std::clamp(fits ? all : std::clamp(width / b.w, kReadableZoom, 1.0), kLeastZoom, kMostZoom);
  double middle = scene_->picture.joint ? (scene_->layout.cut_left + scene_->layout.cut_right) / 2 : b.x + b.w / 2;
  origin_.setX((b.w * zoom_ <= width ? b.x + b.w / 2 : middle) - width / 2 / zoom_);
  origin_.setY(b.h * zoom_ <= height ? b.y + b.h / 2 - (height / 2 + kHeadingHeight) / zoom_
                                     : b.y - kHeadingHeight / zoom_);
  if (b.w * zoom_ > width) show_some_card();
  fitted_ = !whole;
  stale();
}

// Wide pictures have rows in which no card is near the middle: moves sideways to where most cards are.
void GraphView::show_some_card() {
  const QRectF area =
      scene_area().adjusted(0, kHeadingHeight / zoom_, -kOverviewWidth / zoom_, -legend_strip().height() / zoom_);
  std::vector<int> cards, links;
  const Box& all = scene_->layout.bounds;
  scene_->visible({all.x, static_cast<float>(area.top()), all.w, static_cast<float>(area.height())}, cards, links);
  std::vector<std::pair<double, double>> spans;
  for (const bool inputs : {false, true})  // a row of parameters alone says little
    for (int card : cards) {
      const Box& box = scene_->layout.boxes[card];
      if (!spans.empty() && inputs) break;
      if (!inputs && scene_->picture.cards[card].family == Family::Input) continue;
      if (box.y >= area.top() && box.bottom() <= area.bottom()) spans.emplace_back(box.x, box.right());
    }
  auto shown = [&](double left) {
    return std::ranges::count_if(
        spans, [&](const auto& span) { return span.first >= left && span.second <= left + area.width(); });
  };
  if (spans.empty() || shown(area.left()) > 0) return;
  const double margin = 12 / zoom_;
  double best = spans.front().first - margin;
  for (const auto& span : spans)
    if (shown(span.first - margin) > shown(best)) best = span.first - margin;
  origin_.setX(best);
}

void GraphView::zoom_to_selection() {
  if (!scene_ || state_.selected < 0) return;
  const Box& b = scene_->layout.boxes[state_.selected];
  fitted_ = false;
  zoom_ = 1;
  origin_ = QPointF(b.center_x(), b.center_y()) - QPointF(width() / 2.0, height() / 2.0) / zoom_;
  stale();
}

void GraphView::zoom_by(double factor, QPointF at) {
  fitted_ = false;
  QPointF fixed = to_scene(at);
  zoom_ = std::clamp(zoom_ * factor, kLeastZoom, kMostZoom);
  origin_ = fixed - at / zoom_;
  stale();
}

void GraphView::reveal(int card) {
  const Box& b = scene_->layout.boxes[card];
  QRectF box(to_view({b.x, b.y}), QSizeF(b.w, b.h) * zoom_);
  QRectF inside = QRectF(rect()).adjusted(12, kHeadingHeight + 12, -kOverviewWidth - 12, -12 - legend_strip().height());
  if (zoom_ >= 0.25 && inside.contains(box)) return;
  fitted_ = false;
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
  fitted_ = false;
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
    paint_legend(painter, legend_strip(), overlay_, theme);
  }
  if (!busy_.isEmpty()) {
    painter.setPen(theme.dim);
    painter.setFont(interface_font());
    painter.drawText(rect(), Qt::AlignCenter, busy_);
  }
  if (hasFocus()) draw_focus(painter, QRectF(rect()).adjusted(0.5, 0.5, 0.5, 0.5));
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
  double left = to_view({scene_->layout.cut_left, 0}).x(), right = to_view({scene_->layout.cut_right, 0}).x();
  const QString forward = QString("forward · %1").arg(count_text(picture.nodes_on[0], "node"));
  QString backward = QString("backward · %1").arg(count_text(picture.nodes_on[1], "node"));
  if (picture.recomputed > 0) backward += QString(" · %1 recomputed").arg(picture.recomputed);
  // Without a cut it is not known what would be saved, only what the backward reads.
  QString saved = QString(picture.cut_known ? "%1 saved" : "%1 read by the backward").arg(picture.unknown.values);
  const QString with_size = saved + " · " + size_text(picture.unknown.saved);
  const auto wide = [&](const QString& text) { return painter.fontMetrics().horizontalAdvance(text) + 24; };
  // Sizes of symbols are long, and stand in the status bar too.
  if (wide(forward) + wide(with_size) + wide(backward) <= width()) saved = with_size;
  const double need = wide(saved);
  const double least = wide(forward) + need / 2, most = width() - wide(backward) - need / 2;
  const double middle = least <= most ? std::clamp((left + right) / 2, least, most) : width() / 2.0;
  heading(0, middle - need / 2, forward, Qt::AlignLeft);
  painter.setPen(theme.ink);
  heading(middle - need / 2, middle + need / 2, saved, Qt::AlignHCenter);
  painter.setPen(theme.dim);
  heading(middle + need / 2, width(), backward, Qt::AlignRight);
}

QRectF GraphView::overview_box() const {
  if (!scene_) return {};
  const Box& b = scene_->layout.bounds;
  if (b.h * zoom_ <= picture_height() && b.w * zoom_ <= width()) return {};
  double room_h = picture_height() - 16, room_w = kOverviewWidth - 12;
  double h = std::min(room_h, std::max(40.0, b.h * (room_w / b.w)));
  return {width() - kOverviewWidth + 6.0, kHeadingHeight + 8.0, room_w, h};
}

void GraphView::paint_overview(QPainter& painter) {
  QRectF box = overview_box();
  if (box.isEmpty()) return;
  const Theme& theme = *state_.theme;
  const Box& b = scene_->layout.bounds;
  double sx = box.width() / b.w, sy = box.height() / b.h;
  use(painter, theme.line, theme.paper);
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
  use(painter, QPen(theme.accent, 1), QColor(theme.accent.red(), theme.accent.green(), theme.accent.blue(), 30));
  painter.drawRect(QRectF(box.x() + (seen.x() - b.x) * sx, box.y() + (seen.y() - b.y) * sy, seen.width() * sx,
                          std::max(3.0, seen.height() * sy)));
  if (state_.selected >= 0) {
    const Box& c = scene_->layout.boxes[state_.selected];
    painter.fillRect(QRectF(box.x(), box.y() + (c.center_y() - b.y) * sy - 1, box.width(), 2), theme.accent);
  }
  painter.setClipping(false);
}

void GraphView::resizeEvent(QResizeEvent* event) {
  if ((fit_when_shown_ || fitted_) && isVisible()) {
    fit_when_shown_ = false;
    fit();
  }
  stale();
  QWidget::resizeEvent(event);
}

void GraphView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) stale();
  if (event->type() == QEvent::StyleChange) {
    state_.theme = &Theme::current();
    set_overlay(overlay_.kind);
    stale();
  }
  QWidget::changeEvent(event);
}

void GraphView::leaveEvent(QEvent* event) {
  set_hovered(-1);
  QWidget::leaveEvent(event);
}

QStringList GraphView::saved_lines(int index) const {
  constexpr std::size_t kMost = 8;
  const std::vector<int>& saved = scene_->picture.cards[index].saved;
  QStringList lines;
  for (std::size_t i = 0; i < std::min(saved.size(), kMost); ++i) {
    const SavedValue& value = scene_->picture.saved[saved[i]];
    lines << tr("saved for backward: %1, %2%3")
                 .arg(text(value.name), size_text(value, scene_->picture.unknown),
                      value.why.empty() ? "" : ", " + text(value.why));
  }
  if (saved.size() > kMost) lines << tr("and %1 more").arg(saved.size() - kMost);
  return lines;
}

QString GraphView::tooltip(int index) const {
  const Card& card = scene_->picture.cards[index];
  QStringList lines, overlaid;
  if (overlay_.kind != OverlayKind::None && !overlay_.texts[index].isEmpty())
    overlaid << overlay_name(overlay_.kind).toLower() + ": " + overlay_.texts[index];
  if (!card.node) {
    lines << QString("%1: %2, %3").arg(text(card.title), count_text(card.nodes, "node"), size_text(card.bytes))
          << overlaid << saved_lines(index) << tr("Enter or double-click unfolds");
    return lines.join('\n');
  }
  QString name = text(card.node->name());
  auto family = family_name(card.family);
  lines << QString("%1 = %2").arg(name, text(card.node->op()->is_call() ? card.node->op()->name : card.title));
  lines << QString("%1  %2, %3")
               .arg(text(annotation(card.node->meta)), size_text(card.node->meta, card.node->graph().shapes.get()),
                    text(family));
  lines << saved_lines(index);
  if (card.again) lines << tr("recomputed in the backward");
  lines << overlaid;
  if (card.node->origin && !card.node->origin->file.empty()) {
    const StackFrame& frame = card.node->origin->of_user();
    lines << QString("%1:%2  %3")
                 .arg(text(frame.file.substr(frame.file.find_last_of('/') + 1)))
                 .arg(frame.line)
                 .arg(text(frame.code));
  }
  return lines.join('\n');
}

bool GraphView::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    auto* help = static_cast<QHelpEvent*>(event);
    int card = card_under(help->pos());
    int ribbon = card >= 0 ? -1 : ribbon_under(help->pos());
    if (card >= 0 || ribbon >= 0) {
      QToolTip::showText(help->globalPos(), card >= 0 ? tooltip(card) : saved_lines(ribbon).join('\n'), this);
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
