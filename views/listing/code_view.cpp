// CodeView paints the visible lines of FX text in a fixed-width grid. Rows are lines without those in folded modules;
// keys and mouse move the current line, choose its node, fold and copy.
#include "views/listing/code_view.h"

#include <QApplication>
#include <QClipboard>
#include <QFontMetricsF>
#include <QKeyEvent>
#include <QMouseEvent>
#include <algorithm>
#include <cmath>

#include "views/look/format.h"
#include "views/look/plot.h"
#include "views/look/ramp.h"
#include "views/look/tell.h"

namespace partita::views {
namespace {

// Names have the colours of their cards, as far as text can be read in them.
QColor colour(TokenKind token, std::optional<Family> family) {
  const Theme& t = Theme::current();
  if (token == TokenKind::Name && family) return readable_on(t.paper, t.family(*family), t.ink);
  const QColor by_token[] = {t.ink, t.keyword, t.string, t.number, t.comment, t.annotation, t.accent, t.comment};
  return by_token[static_cast<std::size_t>(token)];
}

}  // namespace

CodeView::CodeView(QWidget* parent) : QAbstractScrollArea(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setFrameShape(QFrame::NoFrame);
  QFont font = code_font();
  font.setPointSizeF(font.pointSizeF() * 0.92);  // some 80 columns beside the picture
  setFont(font);
  setAccessibleName(tr("Code"));
  viewport()->setCursor(Qt::IBeamCursor);
  update_bars();
}

void CodeView::set_document(std::shared_ptr<const CodeDocument> document) {
  document_ = std::move(document);
  changes_.clear();
  folded_.clear();
  rows_.clear();
  current_ = anchor_ = chosen_ = -1;
  verticalScrollBar()->setValue(0);
  horizontalScrollBar()->setValue(0);
  update_bars();
  viewport()->update();
}

const CodeSection* CodeView::section_at(int line) const {
  if (!document_) return nullptr;
  const auto& sections = document_->sections();
  const auto after = std::ranges::upper_bound(sections, line, {}, &CodeSection::begin);
  if (after == sections.begin() || line >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

bool CodeView::is_hidden(int line) const {
  const CodeSection* section = section_at(line);
  return section && section->begin != line && folded_.contains(section->begin);
}

int CodeView::row_count() const {
  return !rows_.empty() ? static_cast<int>(rows_.size()) : document_ ? document_->line_count() : 0;
}

int CodeView::line_of_row(int row) const {
  if (rows_.empty()) return row;
  return rows_[static_cast<std::size_t>(std::clamp(row, 0, row_count() - 1))];
}

int CodeView::row_of_line(int line) const {
  if (rows_.empty()) return line;
  return static_cast<int>(std::ranges::upper_bound(rows_, line) - rows_.begin()) - 1;
}

void CodeView::arrange_rows() {
  const int top = line_of_row(verticalScrollBar()->value());
  rows_.clear();
  if (!folded_.empty())
    for (int line = 0; line < document_->line_count(); ++line)
      if (!is_hidden(line)) rows_.push_back(line);
  update_bars();
  verticalScrollBar()->setValue(row_of_line(top));
  viewport()->update();
}

void CodeView::fold_at(int line) {
  const CodeSection* section = section_at(line);
  if (!section) return;
  if (folded_.erase(section->begin) == 0) {
    folded_.insert(section->begin);
    if (current_ > section->begin && current_ < section->end) current_ = section->begin;
  }
  anchor_ = -1;
  arrange_rows();
}

void CodeView::fold_all(bool folded) {
  if (!document_) return;
  folded_.clear();
  if (folded)
    for (const CodeSection& section : document_->sections()) folded_.insert(section.begin);
  arrange_rows();
  if (is_hidden(current_)) current_ = section_at(current_)->begin;
}

void CodeView::set_line_changes(std::vector<Change> changes) {
  changes_ = std::move(changes);
  viewport()->update();
}

void CodeView::select(const QString& node) {
  if (!document_) return;
  chosen_ = document_->line_of(node);
  set_current(chosen_, false);
  viewport()->update();
}

void CodeView::set_search(const QString& text) {
  search_ = text;
  viewport()->update();
}

bool CodeView::find_next(bool backwards) {
  if (!document_ || search_.isEmpty()) return false;
  int from = current_ < 0 ? first_visible_line() : current_ + (backwards ? -1 : 1);
  int line = document_->find(search_, from, backwards);
  if (line < 0) return false;
  set_current(line, true);
  return true;
}

void CodeView::set_current(int line, bool tell) {
  anchor_ = -1;
  if (line == current_) return;
  current_ = line;
  if (is_hidden(line)) fold_at(line);
  current_ = line;
  if (line >= 0) reveal(line);
  viewport()->update();
  if (tell && document_)
    if (QString node = document_->node_at(line); !node.isEmpty()) {
      chosen_ = line;
      Q_EMIT node_chosen(node);
    }
}

void CodeView::reveal(int line) {
  int page = std::max(1, viewport()->height() / line_height_);
  int first = verticalScrollBar()->value(), row = row_of_line(line);
  if (row >= first + 1 && row < first + page - 1) return;
  verticalScrollBar()->setValue(row - page / 3);
}

double CodeView::margin_width() const {
  int digits = std::max(3, static_cast<int>(QString::number(document_ ? document_->line_count() : 0).size()));
  return (digits + 2) * char_width_ + 6;
}

void CodeView::update_bars() {
  QFontMetricsF metrics(font());
  char_width_ = metrics.horizontalAdvance('m');
  line_height_ = static_cast<int>(std::ceil(metrics.height() * 1.12));
  ascent_ = static_cast<int>(std::round((line_height_ - metrics.height()) / 2 + metrics.ascent()));
  int lines = row_count();
  int page = std::max(1, viewport()->height() / line_height_);
  verticalScrollBar()->setPageStep(page);
  verticalScrollBar()->setRange(0, std::max(0, lines - page + 1));
  int columns = static_cast<int>((viewport()->width() - margin_width()) / char_width_);
  horizontalScrollBar()->setPageStep(std::max(1, columns));
  horizontalScrollBar()->setSingleStep(8);
  horizontalScrollBar()->setRange(0, std::max(0, (document_ ? document_->longest_line() : 0) + 2 - columns));
}

void CodeView::paintEvent(QPaintEvent*) {
  const Theme& theme = Theme::current();
  QPainter painter(viewport());
  painter.fillRect(viewport()->rect(), theme.paper);
  if (!document_) return;
  painter.setFont(font());
  double margin = margin_width();
  double left = margin - horizontalScrollBar()->value() * char_width_;
  int first = verticalScrollBar()->value();
  int last = std::min(row_count(), first + viewport()->height() / line_height_ + 2);
  int low = std::min(current_, anchor_ < 0 ? current_ : anchor_), high = std::max(current_, anchor_);
  // Long lines are cut to what is seen, so that a line of a megabyte costs no more than the page.
  int columns = static_cast<int>(viewport()->width() / char_width_) + 2;
  const int chosen = chosen_line();
  int skip = std::max(0, horizontalScrollBar()->value() - 1);
  for (int row = first; row < last; ++row) {
    const int i = line_of_row(row);
    int y = (row - first) * line_height_;
    bool current = i >= low && i <= high && low >= 0;
    // A comment that is clicked is where the keys go on, and chooses nothing.
    const bool lit = i == chosen || (current && (anchor_ >= 0 || chosen < 0));
    if (lit) painter.fillRect(QRectF(0, y, viewport()->width(), line_height_), theme.current_line);
    if (i < static_cast<int>(changes_.size()) && changes_[i] != Change::None) {
      QColor c = changes_[i] == Change::Added     ? theme.added
                 : changes_[i] == Change::Removed ? theme.removed
                                                  : theme.changed;
      painter.fillRect(QRectF(0, y, 3, line_height_), c);
      c.setAlpha(28);
      painter.fillRect(QRectF(3, y, viewport()->width(), line_height_), c);
    }
    const CodeSection* section = section_at(i);
    const bool begins = section && section->begin == i, folded = begins && folded_.contains(i);
    const QString line =
        folded ? tr("    %1, %2").arg(section->label, count_text(section->end - i, "line")) : document_->shown_line(i);
    const std::optional<Family> family = document_->family_at(i);
    painter.setClipRect(QRectF(margin, y, viewport()->width() - margin, line_height_));
    auto draw = [&](int begin, int end, TokenKind token) {
      begin = std::max(begin, skip);
      end = std::min(end, skip + columns);
      if (end <= begin) return;
      painter.setPen(colour(token, family));
      painter.drawText(QPointF(left + begin * char_width_, y + ascent_), line.sliced(begin, end - begin));
    };
    if (!search_.isEmpty())
      for (qsizetype at = line.indexOf(search_, 0, Qt::CaseInsensitive); at >= 0;
           at = line.indexOf(search_, at + 1, Qt::CaseInsensitive)) {
        QColor mark = theme.warn;
        mark.setAlpha(80);
        painter.fillRect(QRectF(left + static_cast<double>(at) * char_width_, y + 1,
                                static_cast<double>(search_.size()) * char_width_, line_height_ - 2),
                         mark);
      }
    int at = 0;
    if (folded) draw(0, at = static_cast<int>(line.size()), TokenKind::Annotation);
    for (const TokenSpan& span : folded ? std::vector<TokenSpan>() : highlight_fx(line)) {
      draw(at, span.begin, TokenKind::Plain);
      draw(span.begin, span.begin + span.length, span.token);
      at = span.begin + span.length;
    }
    draw(at, static_cast<int>(line.size()), TokenKind::Plain);
    painter.setClipping(false);
    painter.setPen(current ? theme.ink : theme.comment);
    painter.drawText(QRectF(0, y, margin - char_width_, line_height_), Qt::AlignRight | Qt::AlignVCenter,
                     QString::number(i + 1));
    if (begins)
      painter.drawText(QRectF(margin - char_width_, y, char_width_, line_height_), Qt::AlignCenter,
                       QString::fromUtf8(folded ? "▸" : "▾"));
  }
  if (hasFocus()) draw_focus(painter, QRectF(viewport()->rect()).adjusted(0.5, 0.5, 0.5, 0.5));
}

bool CodeView::viewportEvent(QEvent* event) {
  const auto tip = [this](QPoint point) {
    const int line = line_at(point.y());
    if (line < 0) return QString();
    const QString whole = document_->line(line).trimmed().toString(), shown = document_->shown_line(line);
    const bool cut = shown.trimmed() != whole || margin_width() + shown.size() * char_width_ > viewport()->width();
    constexpr qsizetype kMost = 2000;
    return cut ? whole.left(kMost) : QString();
  };
  return show_tip(event, this, tip) || QAbstractScrollArea::viewportEvent(event);
}

void CodeView::resizeEvent(QResizeEvent* event) {
  update_bars();
  QAbstractScrollArea::resizeEvent(event);
}

void CodeView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) update_bars();
  QAbstractScrollArea::changeEvent(event);
}

int CodeView::line_at(int y) const {
  int row = verticalScrollBar()->value() + y / line_height_;
  return document_ && row < row_count() && y >= 0 ? line_of_row(row) : -1;
}

void CodeView::mousePressEvent(QMouseEvent* event) {
  int line = line_at(event->pos().y());
  if (event->button() != Qt::LeftButton || line < 0) return;
  const CodeSection* section = section_at(line);
  if (section && section->begin == line && event->pos().x() < margin_width()) return fold_at(line);
  if (event->modifiers() & Qt::ShiftModifier) {
    anchor_ = line;
    viewport()->update();
    return;
  }
  set_current(line, true);
}

void CodeView::mouseMoveEvent(QMouseEvent* event) {
  if (!(event->buttons() & Qt::LeftButton) || current_ < 0) return;
  int line = line_at(event->pos().y());
  anchor_ = line == current_ ? -1 : line;
  viewport()->update();
}

QString CodeView::selected_text() const {
  if (!document_ || current_ < 0) return {};
  int low = std::min(current_, anchor_ < 0 ? current_ : anchor_), high = std::max(current_, anchor_);
  QStringList lines;
  for (int i = low; i <= high; ++i) lines << document_->line(i).toString();
  return lines.join('\n');
}

void CodeView::keyPressEvent(QKeyEvent* event) {
  if (!document_) return QAbstractScrollArea::keyPressEvent(event);
  if (event->matches(QKeySequence::Copy)) {
    const QString copied = selected_text();
    if (copied.isEmpty()) return tell(this, tr("Nothing is copied: choose lines first"));
    QApplication::clipboard()->setText(copied);
    return tell(this, tr("Copied %1 to the clipboard").arg(count_text(copied.count('\n') + 1, "line")));
  }
  int page = std::max(1, viewport()->height() / line_height_ - 1);
  int last = row_count() - 1;
  const int row = row_of_line(current_);
  auto go = [&](int to) { set_current(line_of_row(std::clamp(to, 0, last)), true); };
  switch (event->key()) {
    case Qt::Key_Up:
      if (event->modifiers() & Qt::AltModifier) break;
      return go(current_ < 0 ? verticalScrollBar()->value() : row - 1);
    case Qt::Key_Down:
      if (event->modifiers() & Qt::AltModifier) break;
      return go(current_ < 0 ? verticalScrollBar()->value() : row + 1);
    case Qt::Key_PageUp:
      return go(row - page);
    case Qt::Key_PageDown:
      return go(row + page);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      return fold_at(current_);
    case Qt::Key_Home:
      return go(0);
    case Qt::Key_End:
      return go(last);
    default:
      break;
  }
  QAbstractScrollArea::keyPressEvent(event);
}

}  // namespace partita::views
