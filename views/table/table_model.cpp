#include "views/table/table_model.h"

namespace partita::views {

TableModel::TableModel(QStringList columns, QObject* parent)
    : QAbstractTableModel(parent), columns_(std::move(columns)) {}

void TableModel::set_rows(std::vector<Row> rows) {
  beginResetModel();
  rows_ = std::move(rows);
  endResetModel();
}

void TableModel::set_columns(QStringList columns) {
  beginResetModel();
  columns_ = std::move(columns);
  rows_.clear();
  endResetModel();
}

int TableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}
int TableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(columns_.size());
}

QVariant TableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Row& row = rows_[index.row()];
  if (role == NodeRole) return row.node;
  if (index.column() >= static_cast<int>(row.cells.size())) return {};
  const Cell& cell = row.cells[index.column()];
  switch (role) {
    case Qt::DisplayRole:
    case Qt::ToolTipRole:
      return cell.text;
    case Qt::TextAlignmentRole:
      if (cell.text.size() == 1 && !cell.text[0].isDigit()) return QVariant(Qt::AlignCenter);  // a mark
      return QVariant(std::isnan(cell.number) ? Qt::AlignLeft | Qt::AlignVCenter : Qt::AlignRight | Qt::AlignVCenter);
    case SortRole:
      return std::isnan(cell.number) ? QVariant(cell.text) : QVariant(cell.number);
    case ToneRole:
      return static_cast<int>(cell.tone);
    default:
      return {};
  }
}

QVariant TableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= static_cast<int>(columns_.size())) return {};
  if (role == Qt::TextAlignmentRole) {  // numbers are right-aligned, and so are their headings
    const auto column = static_cast<std::size_t>(section);
    const bool number = !rows_.empty() && column < rows_[0].cells.size() && !std::isnan(rows_[0].cells[column].number);
    return QVariant((number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  }
  return role == Qt::DisplayRole ? QVariant(columns_[section]) : QVariant();
}

QString as_tsv(const QStringList& columns, const std::vector<const Row*>& rows) {
  QString text = columns.join('\t') + '\n';
  for (const Row* row : rows) {
    QStringList cells;
    for (const Cell& cell : row->cells) cells << QString(cell.text).replace('\t', ' ').replace('\n', ' ');
    text += cells.join('\t') + '\n';
  }
  return text;
}

QString as_markdown(const QStringList& columns, const std::vector<const Row*>& rows) {
  QString text = "| " + columns.join(" | ") + " |\n|" + QString("---|").repeated(columns.size()) + '\n';
  for (const Row* row : rows) {
    QStringList cells;
    for (const Cell& cell : row->cells) cells << QString(cell.text).replace('|', "\\|").replace('\n', ' ');
    text += "| " + cells.join(" | ") + " |\n";
  }
  return text;
}

}  // namespace partita::views
