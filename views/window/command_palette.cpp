#include "views/window/command_palette.h"

#include <QGraphicsDropShadowEffect>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>

#include "views/look/theme.h"

namespace partita::views {
namespace {

// Text on the left, detail dimmed on the right.
class EntryDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    if (option.state & QStyle::State_Selected) painter->fillRect(option.rect, option.palette.highlight());
    QRect inner = option.rect.adjusted(12, 0, -12, 0);
    painter->setPen(option.palette.color(QPalette::PlaceholderText));
    QString detail = index.data(Qt::UserRole).toString();
    painter->drawText(inner, Qt::AlignVCenter | Qt::AlignRight, detail);
    painter->setPen(option.palette.color(QPalette::Text));
    int room = inner.width() - option.fontMetrics.horizontalAdvance(detail) - 16;
    painter->drawText(inner, Qt::AlignVCenter | Qt::AlignLeft,
                      option.fontMetrics.elidedText(index.data().toString(), Qt::ElideRight, room));
  }
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const override {
    return {100, option.fontMetrics.height() + 12};
  }
};

}  // namespace

int fuzzy_score(const QString& typed, const QString& text) {
  if (typed.isEmpty()) return 0;
  if (qsizetype at = text.indexOf(typed, 0, Qt::CaseInsensitive); at >= 0)
    return 1000 - static_cast<int>(at) - static_cast<int>(text.size()) / 8;
  int score = 0;
  qsizetype at = 0;
  for (QChar c : typed) {
    if (c.isSpace()) continue;
    qsizetype found = text.indexOf(c, at, Qt::CaseInsensitive);
    if (found < 0) return -1;
    bool at_word = found == 0 || !text[found - 1].isLetterOrNumber();
    score += at_word ? 12 : found == at ? 6 : 1;
    at = found + 1;
  }
  return score;
}

CommandPalette::CommandPalette(QWidget* parent) : QFrame(parent) {
  setObjectName("palette");
  setAutoFillBackground(true);
  auto* shadow = new QGraphicsDropShadowEffect(this);
  shadow->setBlurRadius(24);
  shadow->setOffset(0, 6);
  shadow->setColor(Theme::current().shadow);
  setGraphicsEffect(shadow);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 8, 8, 8);
  field_ = new QLineEdit;
  field_->setPlaceholderText(tr("Command, or name of a node"));
  field_->setAccessibleName(tr("Command"));
  list_ = new QListWidget;
  list_->setItemDelegate(new EntryDelegate(list_));
  list_->setFocusPolicy(Qt::NoFocus);
  list_->setUniformItemSizes(true);
  list_->setFrameShape(QFrame::NoFrame);
  layout->addWidget(field_);
  layout->addWidget(list_, 1);
  field_->installEventFilter(this);
  connect(field_, &QLineEdit::textChanged, this, &CommandPalette::refresh);
  connect(list_, &QListWidget::itemClicked, this, &CommandPalette::run_current);
  hide();
}

void CommandPalette::open(std::vector<PaletteEntry> entries,
                          std::function<std::vector<PaletteEntry>(const QString&)> more) {
  entries_ = std::move(entries);
  more_ = std::move(more);
  int width = std::min(640, parentWidget()->width() - 80), height = std::min(420, parentWidget()->height() - 120);
  setGeometry((parentWidget()->width() - width) / 2, 64, width, height);
  field_->clear();
  refresh();
  show();
  raise();
  field_->setFocus();
}

void CommandPalette::refresh() {
  QString typed = field_->text().trimmed();
  std::vector<std::pair<int, PaletteEntry>> scored;
  for (const PaletteEntry& entry : entries_)
    if (int score = fuzzy_score(typed, entry.text); score >= 0) scored.emplace_back(score, entry);
  if (more_ && !typed.isEmpty())
    for (PaletteEntry& entry : more_(typed))
      if (int score = fuzzy_score(typed, entry.text); score >= 0) scored.emplace_back(score - 100, std::move(entry));
  std::stable_sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr std::size_t kMost = 200;
  if (scored.size() > kMost) scored.resize(kMost);
  shown_.clear();
  list_->clear();
  for (auto& [score, entry] : scored) {
    auto* item = new QListWidgetItem(entry.text, list_);
    item->setData(Qt::UserRole, entry.detail);
    shown_.push_back(std::move(entry));
  }
  list_->setCurrentRow(shown_.empty() ? -1 : 0);
}

void CommandPalette::run_current() {
  int row = list_->currentRow();
  hide();
  if (parentWidget()) parentWidget()->setFocus();
  if (row >= 0 && row < static_cast<int>(shown_.size())) {
    auto run = shown_[row].run;
    run();
  }
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::FocusOut && !isHidden()) hide();
  if (event->type() != QEvent::KeyPress) return QFrame::eventFilter(watched, event);
  auto* key = static_cast<QKeyEvent*>(event);
  int row = list_->currentRow(), rows = list_->count();
  switch (key->key()) {
    case Qt::Key_Down:
      list_->setCurrentRow(std::min(rows - 1, row + 1));
      return true;
    case Qt::Key_Up:
      list_->setCurrentRow(std::max(0, row - 1));
      return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      run_current();
      return true;
    case Qt::Key_Escape:
      hide();
      if (parentWidget()) parentWidget()->setFocus();
      return true;
    default:
      return false;
  }
}

}  // namespace partita::views
