#pragma once
#include "views/table/table_panel.h"

class QLineEdit;
class QPushButton;

namespace partita::views {

struct Document;

/// A row for every node with a note or a bookmark, in the order of the graph.
std::vector<Row> note_rows(const Document& document);

/// The notes of a graph, and the one of the chosen node to write.
class NotesView : public TablePanel {
  Q_OBJECT

 public:
  explicit NotesView(QWidget* parent = nullptr);
  /// `note`: null when there is none.
  void show_node(const QString& node, const QString* note);
  void write();  ///< puts the cursor into the note of the chosen node
  QLineEdit* field() { return field_; }

 Q_SIGNALS:
  void note_written(QString node, QString note);
  void note_removed(QString node);

 private:
  QString node_, kept_;
  QLineEdit* field_;
  QPushButton* remove_;
};

}  // namespace partita::views
