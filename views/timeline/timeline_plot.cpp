// Maps seconds to pixels within the visible range, and paints axis, tracks and spans by it. Of steps that share a pixel
// only the first is painted. Also zooming, panning, and walking by keys.
#include "views/timeline/timeline_plot.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "views/look/format.h"
#include "views/look/keys.h"
#include "views/look/plot.h"
#include "views/look/ramp.h"
#include "views/picture/paint.h"

namespace partita::views {
namespace {

constexpr int kAxis = 24, kHeading = 22, kLane = 20, kPlotMargin = 12;
constexpr double kLeastSeconds = 1e-6;  // of the whole width
constexpr double kLeastShare = 1e-9;    // of the time line: closer, numbers of its seconds can no longer be told apart

double end_of(const TimelineSpan& span) {
  return span.begin + span.seconds;
}

/// A round number of seconds between two marks, so that they are at least so far apart.
double tick_step(double at_least) {
  const double power = std::pow(10, std::floor(std::log10(at_least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= at_least) return factor * power;
  return 10 * power;
}

}  // namespace

QString span_text(const TimelineSpan& span) {
  QString out = text(span.name);
  if (!span.compilation.empty()) out += QString(" (%1)").arg(text(span.compilation));
  if (span.instant) return out;
  out += QObject::tr(": %1, %2 of its own").arg(seconds_text(span.seconds), seconds_text(span.self_seconds));
  return span.ended ? out : out + QObject::tr("; its end is not in the log");
}

TimelinePlot::TimelinePlot(QWidget* parent) : QAbstractScrollArea(parent) {
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setFocusPolicy(Qt::StrongFocus);
  setMinimumSize(240, 120);
  setAccessibleName(tr("Times of compiling"));
}

void TimelinePlot::set_timeline(std::shared_ptr<const Timeline> timeline) {
  timeline_ = std::move(timeline);
  chosen_ = -1;
  highlighted_.clear();
  tops_.clear();
  shares_.clear();
  if (timeline_) {
    int top = 0;
    for (const TimelineTrack& track : timeline_->tracks) {
      tops_.push_back(top);
      top += kHeading + kLane * track.lanes;
    }
    tops_.push_back(top);
    std::unordered_map<std::string, double> own;
    for (const TimelineStep& step : timeline_->steps) own[step.name] = step.self_seconds;
    const double most = timeline_->steps.empty() ? 0 : timeline_->steps.front().self_seconds;
    for (const TimelineSpan& span : timeline_->spans) shares_.push_back(most > 0 ? own[span.name] / most : 0);
  }
  setAccessibleDescription(timeline_ ? text(timeline_->summary()) : QString());
  update_scroll_range();
  verticalScrollBar()->setValue(0);
  fit();
}

void TimelinePlot::update_scroll_range() {
  const int room = viewport()->height() - kAxis, needed = tops_.empty() ? 0 : tops_.back() + kPlotMargin;
  verticalScrollBar()->setRange(0, std::max(0, needed - room));
  verticalScrollBar()->setPageStep(std::max(1, room));
  verticalScrollBar()->setSingleStep(kLane);
}

double TimelinePlot::whole() const {
  return timeline_ ? std::max(timeline_->seconds, kLeastSeconds) : 1;
}

double TimelinePlot::allowed(double length) const {
  return std::clamp(length, std::max(kLeastSeconds, kLeastShare * whole()), whole());
}

void TimelinePlot::show_range(double from, double to) {
  const double length = allowed(to - from);
  from_ = std::clamp(from, 0.0, whole() - length);
  to_ = from_ + length;
  viewport()->update();
}

void TimelinePlot::zoom_to(int span) {
  if (span < 0) return;
  const TimelineSpan& s = timeline_->spans[static_cast<std::size_t>(span)];
  const double room = std::max(0.05 * s.seconds, kLeastSeconds);
  show_range(s.begin - room, end_of(s) + room);
}

void TimelinePlot::zoom_by(double factor, double x) {
  const double wide = std::max(1, viewport()->width() - 2 * kPlotMargin);
  const double share = std::clamp((x - kPlotMargin) / wide, 0.0, 1.0);
  const double here = from_ + share * (to_ - from_);
  const double length = allowed((to_ - from_) / factor);
  show_range(here - share * length, here + (1 - share) * length);
}

double TimelinePlot::x_of(double seconds) const {
  return kPlotMargin + (seconds - from_) / (to_ - from_) * (viewport()->width() - 2 * kPlotMargin);
}

QRectF TimelinePlot::box_of(int span) const {
  const TimelineSpan& s = timeline_->spans[static_cast<std::size_t>(span)];
  const double y =
      kAxis + tops_[static_cast<std::size_t>(s.track)] + kHeading + s.lane * kLane - verticalScrollBar()->value();
  if (s.instant) return {x_of(s.begin) - 5, y, 10, kLane - 1};
  return {x_of(s.begin), y, std::max(1.0, x_of(end_of(s)) - x_of(s.begin)), kLane - 1};
}

int TimelinePlot::at(QPointF point) const {
  if (!timeline_ || point.y() < kAxis) return -1;
  int found = -1;
  for (int i = 0; i < static_cast<int>(timeline_->spans.size()); ++i) {
    const TimelineSpan& span = timeline_->spans[static_cast<std::size_t>(i)];
    if (span.begin > to_) break;
    if ((span.instant || end_of(span) >= from_) && box_of(i).adjusted(-1, 0, 1, 1).contains(point)) found = i;
  }
  return found;
}

void TimelinePlot::set_chosen(int span) {
  chosen_ = span;
  if (span >= 0) setAccessibleDescription(span_text(timeline_->spans[static_cast<std::size_t>(span)]));
  viewport()->update();
}

void TimelinePlot::choose(int span) {
  set_chosen(span);
  if (span < 0) return;
  const TimelineSpan& s = timeline_->spans[static_cast<std::size_t>(span)];
  // What is longer than the view is in it where any of it is.
  const double length = to_ - from_;
  if (end_of(s) < from_ || s.begin > to_ || (s.seconds < length && (s.begin < from_ || end_of(s) > to_)))
    show_range(s.begin + (s.seconds - length) / 2, s.begin + (s.seconds + length) / 2);
  const QRectF box = box_of(span);
  QScrollBar* bar = verticalScrollBar();
  if (box.top() < kAxis) bar->setValue(bar->value() + static_cast<int>(box.top()) - kAxis - kHeading);
  if (box.bottom() > viewport()->height())
    bar->setValue(bar->value() + static_cast<int>(box.bottom()) - viewport()->height() + kLane);
}

void TimelinePlot::highlight(const QString& step) {
  highlighted_ = step.toStdString();
  viewport()->update();
}

void TimelinePlot::paint_axis(QPainter& painter) const {
  const Theme& theme = Theme::current();
  painter.fillRect(QRect(0, 0, viewport()->width(), kAxis), theme.panel);
  const double step = tick_step((to_ - from_) * 90 / std::max(1, viewport()->width() - 2 * kPlotMargin));
  for (double t = std::ceil(from_ / step) * step; t <= to_; t += step) {
    const double x = x_of(t);
    painter.setPen(theme.line);
    painter.drawLine(QPointF(x, kAxis - 6), QPointF(x, viewport()->height()));
    painter.setPen(theme.dim);
    // As many digits as tell two marks apart.
    const int digits = std::max(0, static_cast<int>(-std::floor(std::log10(step))));
    painter.drawText(QPointF(x + 4, kAxis - 8), QString("%1 s").arg(t, 0, 'f', digits));
  }
  painter.setPen(theme.line);
  painter.drawLine(0, kAxis, viewport()->width(), kAxis);
}

void TimelinePlot::paint_span(QPainter& painter, int span, const QRectF& box) const {
  const Theme& theme = Theme::current();
  const TimelineSpan& s = timeline_->spans[static_cast<std::size_t>(span)];
  const bool faint = !highlighted_.empty() && s.name != highlighted_;
  painter.setOpacity(faint ? 0.35 : 1);
  if (s.instant) {
    const QPointF middle(box.center().x(), box.center().y());
    use(painter, Qt::NoPen, span == chosen_ ? theme.accent : theme.dim);
    painter.drawPolygon(
        QPolygonF{middle - QPointF(0, 5), middle + QPointF(5, 0), middle + QPointF(0, 5), middle - QPointF(5, 0)});
    return;
  }
  const QColor fill = sequential(0.12 + 0.8 * shares_[static_cast<std::size_t>(span)], theme);
  painter.fillRect(box, fill);
  if (box.width() >= 3) {
    use(painter, s.ended ? QPen(theme.paper, 1) : QPen(theme.bad, 1, Qt::DashLine));
    painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
  }
  // The part that is in view has the text.
  const QRectF room = box.intersected(QRectF(viewport()->rect())).adjusted(5, 0, -4, 0);
  if (room.width() >= 24) {
    painter.setPen(ink_on(fill));
    const QString both = text(s.name) + "  " + seconds_text(s.seconds);
    const QFontMetrics metrics = painter.fontMetrics();
    const QString shown = metrics.horizontalAdvance(both) <= room.width() ? both : text(s.name);
    painter.drawText(room, Qt::AlignVCenter | Qt::AlignLeft,
                     metrics.elidedText(shown, Qt::ElideRight, static_cast<int>(room.width())));
  }
  if (span == chosen_) {
    painter.setPen(QPen(theme.accent, 2));
    painter.drawRect(box);
  }
}

void TimelinePlot::paintEvent(QPaintEvent*) {
  PlotPainter painter(viewport());
  const Theme& theme = Theme::current();
  if (!timeline_ || timeline_->spans.empty()) return;
  paint_axis(painter);
  painter.setClipRect(QRect(0, kAxis + 1, viewport()->width(), viewport()->height()));
  const int scrolled = verticalScrollBar()->value();
  for (std::size_t t = 0; t < timeline_->tracks.size(); ++t) {
    const TimelineTrack& track = timeline_->tracks[t];
    const int y = kAxis + tops_[t] - scrolled;
    painter.fillRect(QRect(0, y, viewport()->width(), kHeading), theme.paper);  // over the marks of the axis
    painter.setPen(theme.dim);
    const QString title = (track.name.starts_with('/') ? file_title(text(track.name)) : text(track.name)) + "   " +
                          seconds_text(track.busy_seconds);
    painter.drawText(QRect(kPlotMargin, y, viewport()->width() - 2 * kPlotMargin, kHeading), Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(title, Qt::ElideMiddle, viewport()->width() - 2 * kPlotMargin));
  }
  // Of steps that share a pixel of their lane the first is drawn, and the chosen one on top.
  std::vector<std::vector<double>> drawn(timeline_->tracks.size());
  for (std::size_t t = 0; t < drawn.size(); ++t)
    drawn[t].assign(static_cast<std::size_t>(timeline_->tracks[t].lanes), -INFINITY);
  for (int i = 0; i < static_cast<int>(timeline_->spans.size()); ++i) {
    const TimelineSpan& span = timeline_->spans[static_cast<std::size_t>(i)];
    if (span.begin > to_) break;
    if (!span.instant && end_of(span) < from_) continue;
    const QRectF box = box_of(i);
    if (box.bottom() < kAxis || box.top() > viewport()->height()) continue;
    double& reached = drawn[static_cast<std::size_t>(span.track)][static_cast<std::size_t>(span.lane)];
    if (!span.instant && std::floor(box.right()) <= reached) continue;
    reached = std::max(reached, std::floor(box.right()));
    paint_span(painter, i, box);
  }
  if (chosen_ >= 0) paint_span(painter, chosen_, box_of(chosen_));
  painter.setOpacity(1);
  painter.setClipping(false);
  if (hasFocus()) draw_focus(painter, viewport()->rect());
}

void TimelinePlot::wheelEvent(QWheelEvent* event) {
  const QPointF pixels = event->pixelDelta().isNull() ? QPointF(event->angleDelta()) / 2 : QPointF(event->pixelDelta());
  if (event->modifiers() & (Qt::ShiftModifier | Qt::AltModifier))
    verticalScrollBar()->setValue(verticalScrollBar()->value() -
                                  static_cast<int>(pixels.y() != 0 ? pixels.y() : pixels.x()));
  else
    zoom_by(std::pow(1.0015, event->angleDelta().y()), event->position().x());
  event->accept();
}

void TimelinePlot::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton) return;
  setFocus();
  drag_from_ = event->position();
  pressed_ = true;
  dragged_ = false;
}

void TimelinePlot::mouseMoveEvent(QMouseEvent* event) {
  if (!pressed_) return;
  const QPointF moved = event->position() - drag_from_;
  if (!dragged_ && moved.manhattanLength() <= 4) return;
  dragged_ = true;
  viewport()->setCursor(Qt::ClosedHandCursor);
  const double seconds = moved.x() / std::max(1, viewport()->width() - 2 * kPlotMargin) * (to_ - from_);
  show_range(from_ - seconds, to_ - seconds);
  verticalScrollBar()->setValue(verticalScrollBar()->value() - static_cast<int>(moved.y()));
  drag_from_ = event->position();
}

void TimelinePlot::mouseReleaseEvent(QMouseEvent* event) {
  viewport()->unsetCursor();
  if (std::exchange(pressed_, false) && !dragged_ && event->button() == Qt::LeftButton) {
    set_chosen(at(event->position()));
    Q_EMIT span_chosen(chosen_);
  }
}

void TimelinePlot::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const int span = at(event->position()); span >= 0) zoom_to(span);
}

/// Left and right in the lane, up to the step that this one is part of, down to the first in it.
void TimelinePlot::walk(int key) {
  if (!timeline_ || timeline_->spans.empty()) return;
  const std::vector<TimelineSpan>& spans = timeline_->spans;
  const int count = static_cast<int>(spans.size());
  int found = chosen_ < 0 ? 0 : -1;
  const auto fits = [&](int i) {
    const TimelineSpan &from = spans[static_cast<std::size_t>(chosen_)], &to = spans[static_cast<std::size_t>(i)];
    const int lanes = key == Qt::Key_Up ? -1 : key == Qt::Key_Down ? 1 : 0;
    return to.track == from.track && to.lane == from.lane + lanes && (key != Qt::Key_Down || to.begin <= end_of(from));
  };
  const int by = key == Qt::Key_Left || key == Qt::Key_Up ? -1 : 1;
  for (int i = chosen_ + by; found < 0 && i >= 0 && i < count; i += by)
    if (fits(i)) found = i;
  if (found < 0) return;
  choose(found);
  Q_EMIT span_chosen(found);
}

void TimelinePlot::keyPressEvent(QKeyEvent* event) {
  if (is_command(*event)) return QAbstractScrollArea::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right:
    case Qt::Key_Up:
    case Qt::Key_Down:
      return walk(event->key());
    case Qt::Key_Plus:
    case Qt::Key_Equal:
    case Qt::Key_Minus: {
      const double x = chosen_ >= 0 ? std::clamp(box_of(chosen_).center().x(), 0.0, double(viewport()->width()))
                                    : viewport()->width() / 2.0;
      return zoom_by(event->key() == Qt::Key_Minus ? 0.5 : 2, x);
    }
    case Qt::Key_F:
      return fit();
    case Qt::Key_Z:
    case Qt::Key_Return:
    case Qt::Key_Enter:
      return zoom_to(chosen_);
    default:
      QAbstractScrollArea::keyPressEvent(event);
  }
}

bool TimelinePlot::viewportEvent(QEvent* event) {
  const auto tip = [this](QPoint point) {
    const int span = at(point);
    if (span < 0) return QString();
    const TimelineSpan& s = timeline_->spans[static_cast<std::size_t>(span)];
    return span_text(s) + (s.about.empty() ? "" : "\n" + text(s.about));
  };
  return show_tip(event, viewport(), tip) || QAbstractScrollArea::viewportEvent(event);
}

}  // namespace partita::views
