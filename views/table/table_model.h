#pragma once
#include <QAbstractTableModel>
#include <cmath>
#include <vector>

namespace partita::views {

enum class Tone : unsigned char { Plain, Dim, Good, Warn, Bad };

struct Cell {
  QString text;
  double number = NAN;  ///< sorts the cell; NaN: its text does
  Tone tone = Tone::Plain;

  Cell(QString text = {}, Tone tone = Tone::Plain) : text(std::move(text)), tone(tone) {}
  Cell(QString text, double number, Tone tone = Tone::Plain) : text(std::move(text)), number(number), tone(tone) {}
};

struct Row {
  QString node;  ///< the node that choosing the row selects; empty: none
  std::vector<Cell> cells;
};

/// A read-only table.
class TableModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Role { SortRole = Qt::UserRole + 1, NodeRole, ToneRole };

  explicit TableModel(QStringList columns, QObject* parent = nullptr);
  void set_rows(std::vector<Row> rows);
  const std::vector<Row>& rows() const { return rows_; }
  void set_columns(QStringList columns);  ///< and no rows
  const QStringList& columns() const { return columns_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 private:
  QStringList columns_;
  std::vector<Row> rows_;
};

/// For spreadsheets, and for GitHub.
QString as_tsv(const QStringList& columns, const std::vector<const Row*>& rows);
QString as_markdown(const QStringList& columns, const std::vector<const Row*>& rows);

}  // namespace partita::views
