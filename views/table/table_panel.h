#pragma once

#include <QTableView>
#include <QWidget>

#include "views/look/theme.h"
#include "views/table/table_model.h"

class QHBoxLayout;
class QLabel;
class QLineEdit;
class QSortFilterProxyModel;

namespace partita::views {

/// A table with a filter field, sorting by any column, and copying as TSV or Markdown.
class TablePanel : public QWidget {
  Q_OBJECT

 public:
  explicit TablePanel(QStringList columns, QWidget* parent = nullptr);
  /// `keep_widths` keeps the widths of columns, for rows that change ten times a second.
  void set_rows(std::vector<Row> rows, bool keep_widths = false);
  void sort_by(int column, Qt::SortOrder order) { view_->sortByColumn(column, order); }
  void set_stretched_column(int column);
  void set_wrapped_column(int column);  ///< stretched, its text in several lines; for tables of few rows
  /// Chooses its row, without a signal; when there is none, no row about another node stays chosen.
  void select_node(const QString& node);
  /// of the chosen row; empty: none
  QString current_node() const { return view_->currentIndex().data(TableModel::NodeRole).toString(); }
  void set_choose_many(bool many);                 ///< several rows at once
  std::vector<int> chosen_rows() const;            ///< in the order the rows were given
  void choose_rows(const std::vector<int>& rows);  ///< in the order the rows were given; emits rows_changed
  void set_current_row(int row);                   ///< in the order the rows were given
  TableModel* model() { return model_; }
  QTableView* view() { return view_; }
  QHBoxLayout* bar() { return bar_; }          ///< with the filter field; a view adds its own buttons to it
  std::vector<const Row*> shown_rows() const;  ///< filtered and sorted

 Q_SIGNALS:
  void node_chosen(QString node);
  void row_chosen(int row);           ///< in the order the rows were given
  void node_activated(QString node);  ///< Enter or a double click
  void row_activated(int row);        ///< the same, in the order the rows were given
  void rows_changed();                ///< chosen_rows() changed

 private:
  void copy(bool markdown);

  TableModel* model_;
  QSortFilterProxyModel* proxy_;
  QTableView* view_;
  QLineEdit* filter_;
  QLabel* count_;
  QHBoxLayout* bar_;
  bool quiet_ = false;
};

}  // namespace partita::views
