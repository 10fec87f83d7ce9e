// A table over a sorting and filtering proxy model, with the order of cells, the colours of tones, and copying. Chosen
// row and scroll position stay when the rows are replaced.
#include "views/table/table_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QItemSelection>
#include <QLineEdit>
#include <QScrollBar>
#include <QSortFilterProxyModel>
#include <QStyledItemDelegate>
#include <utility>

#include "core/base/natural_order.h"
#include "views/look/arrange.h"
#include "views/look/format.h"
#include "views/look/tell.h"

namespace partita::views {

/// Colours the text of a cell by its tone, in the current theme, and asks for the height of wrapped text.
class ToneDelegate : public QStyledItemDelegate {
 public:
  explicit ToneDelegate(QTableView* view) : QStyledItemDelegate(view), view_(view) {}
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const QSize size = QStyledItemDelegate::sizeHint(option, index);
    if (!view_->wordWrap()) return size;
    const QRect room(0, 0, std::max(1, view_->columnWidth(index.column()) - 2 * 16), 1 << 16);
    const QRect text = option.fontMetrics.boundingRect(room, Qt::TextWordWrap, index.data().toString());
    return {size.width(), text.height() + 10};
  }

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    QStyledItemDelegate::initStyleOption(option, index);
    const Theme& theme = Theme::current();
    const QColor by_tone[] = {theme.ink, theme.dim, theme.good, theme.warn, theme.bad};
    const QColor& colour = by_tone[index.data(TableModel::ToneRole).toUInt()];
    for (auto role : {QPalette::Text, QPalette::HighlightedText}) option->palette.setColor(role, colour);
  }

 private:
  QTableView* view_;
};

/// Numbers sort as numbers, before texts; texts by the numbers in them: k9 before k10. What is empty comes last in both
/// directions.
class NumberOrder : public QSortFilterProxyModel {
 public:
  using QSortFilterProxyModel::QSortFilterProxyModel;

 protected:
  bool lessThan(const QModelIndex& a, const QModelIndex& b) const override {
    const QVariant left = a.data(TableModel::SortRole), right = b.data(TableModel::SortRole);
    const auto rank = [](const QVariant& value) {
      return value.typeId() == QMetaType::Double ? 0 : value.toString().isEmpty() ? 2 : 1;
    };
    const int first = rank(left), second = rank(right);
    if ((first == 2) != (second == 2)) return (second == 2) == (sortOrder() == Qt::AscendingOrder);
    if (first != second) return first < second;
    if (first == 0) return left.toDouble() < right.toDouble();
    const std::u16string x = left.toString().toStdU16String(), y = right.toString().toStdU16String();
    return compare_naturally<char16_t>(x, y) < 0;
  }
};

/// A table that chooses no row when it gets the keyboard: the first arrow does.
class CalmTable : public QTableView {
 public:
  explicit CalmTable(bool& quiet) : quiet_(quiet) {}

 protected:
  void focusInEvent(QFocusEvent* event) override {
    const bool was_quiet = std::exchange(quiet_, true), chosen = currentIndex().isValid();
    QTableView::focusInEvent(event);
    if (!chosen) selectionModel()->clearCurrentIndex();
    quiet_ = was_quiet;
  }

 private:
  bool& quiet_;
};

TablePanel::TablePanel(QStringList columns, QWidget* parent) : QWidget(parent) {
  auto* layout = plain_column(this);
  bar_ = new QHBoxLayout;
  bar_->setContentsMargins(8, 4, 8, 4);
  bar_->setSpacing(8);
  filter_ = new QLineEdit;
  filter_->setPlaceholderText(tr("Filter"));
  filter_->setAccessibleName(tr("Filter"));
  filter_->setClearButtonEnabled(true);
  filter_->setMaximumWidth(200);
  count_ = styled_label("dim");
  bar_->addWidget(filter_, 1);
  bar_->addWidget(count_);
  bar_->addStretch(1);
  auto* copy_button = menu_button(tr("Copy ▾"), tr("Copy the shown rows"));
  copy_button->menu()->addAction(tr("As TSV, for a spreadsheet"), this, [this] { copy(false); });
  copy_button->menu()->addAction(tr("As a Markdown table"), this, [this] { copy(true); });
  bar_->addWidget(copy_button);
  layout->addLayout(bar_);
  const QString content = columns.join(", ");
  model_ = new TableModel(std::move(columns), this);
  proxy_ = new NumberOrder(this);
  proxy_->setSourceModel(model_);
  proxy_->setSortRole(TableModel::SortRole);
  proxy_->setFilterKeyColumn(-1);
  proxy_->setFilterCaseSensitivity(Qt::CaseInsensitive);
  view_ = new CalmTable(quiet_);
  view_->setAccessibleName(tr("Table of %1").arg(content));
  view_->setModel(proxy_);
  view_->setFrameShape(QFrame::NoFrame);
  view_->setShowGrid(false);
  view_->setSortingEnabled(true);
  view_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  proxy_->sort(-1);
  view_->setSelectionBehavior(QAbstractItemView::SelectRows);
  view_->setSelectionMode(QAbstractItemView::SingleSelection);
  view_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  view_->setWordWrap(false);
  view_->setTabKeyNavigation(false);
  view_->verticalHeader()->hide();
  view_->verticalHeader()->setDefaultSectionSize(view_->fontMetrics().height() + 8);
  view_->horizontalHeader()->setHighlightSections(false);
  view_->horizontalHeader()->setSectionsMovable(true);
  view_->horizontalHeader()->setStretchLastSection(true);
  view_->resizeColumnsToContents();
  view_->setItemDelegate(new ToneDelegate(view_));
  layout->addWidget(view_, 1);
  setFocusProxy(view_);
  connect(filter_, &QLineEdit::textChanged, this, [this](const QString& text) {
    proxy_->setFilterFixedString(text);
    count_->setText(tr("%1 of %2").arg(proxy_->rowCount()).arg(model_->rowCount()));
  });
  connect(view_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& index) {
    if (quiet_ || !index.isValid()) return;
    Q_EMIT row_chosen(proxy_->mapToSource(index).row());
    if (QString node = index.data(TableModel::NodeRole).toString(); !node.isEmpty()) Q_EMIT node_chosen(node);
  });
  connect(view_->selectionModel(), &QItemSelectionModel::selectionChanged, this, [this] {
    if (!quiet_) Q_EMIT rows_changed();
  });
  connect(view_, &QTableView::activated, this, [this](const QModelIndex& index) {
    if (QString node = index.data(TableModel::NodeRole).toString(); !node.isEmpty()) Q_EMIT node_activated(node);
    Q_EMIT row_activated(proxy_->mapToSource(index).row());
  });
}

void TablePanel::set_choose_many(bool many) {
  view_->setSelectionMode(many ? QAbstractItemView::ExtendedSelection : QAbstractItemView::SingleSelection);
}

std::vector<int> TablePanel::chosen_rows() const {
  std::vector<int> rows;
  for (const QModelIndex& index : view_->selectionModel()->selectedRows())
    rows.push_back(proxy_->mapToSource(index).row());
  std::ranges::sort(rows);
  return rows;
}

void TablePanel::choose_rows(const std::vector<int>& rows) {
  QItemSelection selection;
  for (int row : rows) {
    QModelIndex index = proxy_->mapFromSource(model_->index(row, 0));
    selection.select(index, index);
  }
  view_->selectionModel()->select(selection, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
}

void TablePanel::set_rows(std::vector<Row> rows, bool keep_widths) {
  quiet_ = true;
  const QString chosen = current_node();
  const int above = view_->verticalScrollBar()->value();
  model_->set_rows(std::move(rows));
  count_->setText(proxy_->rowCount() == model_->rowCount()
                      ? count_text(model_->rowCount(), "row")
                      : tr("%1 of %2").arg(proxy_->rowCount()).arg(model_->rowCount()));
  quiet_ = false;
  view_->verticalScrollBar()->setValue(above);
  select_node(chosen);  // the place in the table is kept when its rows change
  if (keep_widths) return;
  // Widths follow the first rows: measuring thousands would block the window.
  constexpr int kMostMeasured = 60;
  view_->horizontalHeader()->setResizeContentsPrecision(kMostMeasured);
  for (int c = 0; c + 1 < model_->columnCount(); ++c) {
    view_->resizeColumnToContents(c);
    view_->setColumnWidth(c, std::min(view_->columnWidth(c) + 12, 320));
  }
}

void TablePanel::set_stretched_column(int column) {
  view_->horizontalHeader()->setStretchLastSection(false);
  view_->horizontalHeader()->setSectionResizeMode(column, QHeaderView::Stretch);
}

void TablePanel::set_wrapped_column(int column) {
  set_stretched_column(column);
  view_->setWordWrap(true);
  connect(view_->horizontalHeader(), &QHeaderView::sectionResized, view_, &QTableView::resizeRowsToContents);
}

void TablePanel::select_node(const QString& node) {
  const QString chosen = current_node();
  if (chosen == node) return;
  for (int r = 0; r < static_cast<int>(model_->rows().size()); ++r) {
    if (node.isEmpty() || model_->rows()[r].node != node) continue;
    set_current_row(r);
    return;
  }
  if (chosen.isEmpty()) return;  // a row that is about no node stays chosen
  quiet_ = true;
  view_->setCurrentIndex({});
  view_->clearSelection();
  quiet_ = false;
}

void TablePanel::set_current_row(int row) {
  quiet_ = true;
  QModelIndex index = proxy_->mapFromSource(model_->index(row, 0));
  view_->setCurrentIndex(index);
  view_->scrollTo(index);
  quiet_ = false;
}

std::vector<const Row*> TablePanel::shown_rows() const {
  std::vector<const Row*> rows;
  for (int r = 0; r < proxy_->rowCount(); ++r)
    rows.push_back(&model_->rows()[proxy_->mapToSource(proxy_->index(r, 0)).row()]);
  return rows;
}

void TablePanel::copy(bool markdown) {
  QApplication::clipboard()->setText(markdown ? as_markdown(model_->columns(), shown_rows())
                                              : as_tsv(model_->columns(), shown_rows()));
  tell(this, tr("Copied %1 to the clipboard, as %2")
                 .arg(count_text(proxy_->rowCount(), "row"), markdown ? tr("a Markdown table") : tr("TSV")));
}

}  // namespace partita::views
