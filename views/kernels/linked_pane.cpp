// Paints the visible lines of a kernel's code, each with a stripe in the colour of every graph node that it computes
// for. Lines of the chosen node and of the one under the pointer stand out.
#include "views/kernels/linked_pane.h"

#include <QApplication>
#include <QClipboard>
#include <QFontMetricsF>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>

#include "views/look/format.h"
#include "views/look/tell.h"
#include "views/look/theme.h"

namespace partita::views {

QColor link_colour(int node) {
  // The hues of families that are far apart; with more nodes than hues they repeat.
  const Family hues[] = {Family::Matmul,  Family::Reduction, Family::Pointwise, Family::Random,
                         Family::Control, Family::Index,     Family::View};
  return Theme::current().family(hues[static_cast<std::size_t>(node) % std::size(hues)]);
}

LinkedPane::LinkedPane(const QString& title, QWidget* parent) : QAbstractScrollArea(parent), title_(title) {
  setFocusPolicy(Qt::StrongFocus);
  setFrameShape(QFrame::NoFrame);
  setAccessibleName(title);
  QFont font = code_font();
  font.setPointSizeF(font.pointSizeF() * 0.88);
  setFont(font);
  viewport()->setMouseTracking(true);
  update_bars();
}

void LinkedPane::set_code(const loops::LinkedText& code) {
  note_.clear();
  lines_ = text(code.text).split('\n');
  if (!lines_.isEmpty() && lines_.last().isEmpty()) lines_.removeLast();
  longest_ = 0;
  for (QString& line : lines_) {
    QString spaced;
    for (QChar c : std::as_const(line)) c == '\t' ? spaced += QString(8 - spaced.size() % 8, ' ') : spaced += c;
    line = spaced;
    longest_ = std::max(longest_, static_cast<int>(line.size()));
  }
  links_ = code.lines;
  links_.resize(static_cast<std::size_t>(lines_.size()));
  current_ = pointed_ = -1;
  verticalScrollBar()->setValue(0);
  horizontalScrollBar()->setValue(0);
  update_bars();
  viewport()->update();
}

void LinkedPane::set_note(const QString& note) {
  set_code({});
  note_ = note;
  viewport()->update();
}

void LinkedPane::mark(int node) {
  marked_ = node;
  viewport()->update();
  if (node < 0 || lines_.isEmpty()) return;
  const int top = verticalScrollBar()->value(), shown = verticalScrollBar()->pageStep();
  int first = -1;
  for (int line = 0; line < line_count(); ++line) {
    if (!has(line, node)) continue;
    if (first < 0) first = line;
    if (line >= top && line < top + shown) return;
  }
  if (first >= 0) verticalScrollBar()->setValue(std::max(0, first - shown / 3));
}

void LinkedPane::update_bars() {
  const QFontMetricsF metrics(font());
  char_width_ = metrics.horizontalAdvance('m');
  line_height_ = static_cast<int>(metrics.height() + 3);
  ascent_ = static_cast<int>(metrics.ascent() + 1);
  const int rows = std::max(1, viewport()->height() / line_height_);
  verticalScrollBar()->setPageStep(rows);
  verticalScrollBar()->setRange(0, std::max(0, line_count() - rows));
  const int columns = std::max(1, static_cast<int>((viewport()->width() - 16) / char_width_));
  horizontalScrollBar()->setPageStep(columns);
  horizontalScrollBar()->setRange(0, std::max(0, longest_ - columns + 1));
}

void LinkedPane::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  const Theme& theme = Theme::current();
  painter.fillRect(viewport()->rect(), theme.paper);
  painter.setFont(font());
  if (!note_.isEmpty()) {
    painter.setPen(theme.dim);
    painter.setFont(interface_font());
    painter.drawText(viewport()->rect().adjusted(12, 8, -12, -8), Qt::AlignTop | Qt::AlignLeft | Qt::TextWordWrap,
                     note_);
    return;
  }
  const int first = verticalScrollBar()->value();
  const int last = std::min(line_count(), first + viewport()->height() / line_height_ + 2);
  const int cut = horizontalScrollBar()->value();
  for (int line = first; line < last; ++line) {
    const int y = (line - first) * line_height_;
    const std::vector<int>& nodes = nodes_at(line);
    const bool strong = (marked_ >= 0 && has(line, marked_)) || (pointed_ >= 0 && has(line, pointed_));
    if (!nodes.empty()) {
      QColor tint = link_colour(strong && marked_ >= 0 && has(line, marked_) ? marked_ : nodes.front());
      const double share = 5.0 / static_cast<double>(nodes.size());
      for (std::size_t i = 0; i < nodes.size(); ++i)  // all of its nodes, side by side
        painter.fillRect(QRectF(static_cast<double>(i) * share, y, share, line_height_), link_colour(nodes[i]));
      tint.setAlpha(strong ? 70 : 20);
      painter.fillRect(QRect(5, y, viewport()->width(), line_height_), tint);
    }
    if (line == current_ && hasFocus()) {
      painter.setPen(theme.accent);
      painter.drawRect(QRect(5, y, viewport()->width() - 7, line_height_ - 1));
    }
    const QString& shown = lines_[line];
    const bool aside = nodes.empty() && (shown.trimmed().startsWith(';') || shown.trimmed().startsWith('#'));
    painter.setPen(aside ? theme.comment : theme.ink);
    painter.drawText(QPointF(12, y + ascent_), shown.mid(cut));
  }
}

void LinkedPane::resizeEvent(QResizeEvent* event) {
  QAbstractScrollArea::resizeEvent(event);
  update_bars();
}

void LinkedPane::changeEvent(QEvent* event) {
  QAbstractScrollArea::changeEvent(event);
  if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) update_bars();
}

int LinkedPane::line_at(double y) const {
  const int line = verticalScrollBar()->value() + static_cast<int>(y) / line_height_;
  return line < line_count() ? line : -1;
}

int LinkedPane::node_at(int line) const {
  if (line < 0 || nodes_at(line).empty()) return -1;
  return nodes_at(line).front();
}

void LinkedPane::go_to(int line) {
  if (lines_.isEmpty()) return;
  current_ = std::clamp(line, 0, line_count() - 1);
  const int top = verticalScrollBar()->value(), rows = verticalScrollBar()->pageStep();
  if (current_ < top) verticalScrollBar()->setValue(current_);
  if (current_ >= top + rows) verticalScrollBar()->setValue(current_ - rows + 1);
  viewport()->update();
  if (const int node = node_at(current_); node >= 0) Q_EMIT node_chosen(node);
}

void LinkedPane::mousePressEvent(QMouseEvent* event) {
  if (const int line = line_at(event->position().y()); line >= 0) go_to(line);
}

void LinkedPane::mouseMoveEvent(QMouseEvent* event) {
  const int node = node_at(line_at(event->position().y()));
  if (std::exchange(pointed_, node) == node) return;
  viewport()->update();
  Q_EMIT node_pointed(node);
}

void LinkedPane::leaveEvent(QEvent*) {
  if (std::exchange(pointed_, -1) < 0) return;
  viewport()->update();
  Q_EMIT node_pointed(-1);
}

void LinkedPane::keyPressEvent(QKeyEvent* event) {
  const int page = verticalScrollBar()->pageStep();
  if (event->matches(QKeySequence::Copy)) {
    QApplication::clipboard()->setText(lines_.join('\n'));
    return tell(this, tr("Copied %1 to the clipboard").arg(count_text(lines_.size(), "line")));
  }
  switch (event->key()) {
    case Qt::Key_Up:
      return go_to(current_ - 1);
    case Qt::Key_Down:
      return go_to(current_ + 1);
    case Qt::Key_PageUp:
      return go_to(current_ - page);
    case Qt::Key_PageDown:
      return go_to(current_ + page);
    case Qt::Key_Home:
      return go_to(0);
    case Qt::Key_End:
      return go_to(line_count() - 1);
    default:
      QAbstractScrollArea::keyPressEvent(event);
  }
}

}  // namespace partita::views
