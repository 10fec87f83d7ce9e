#pragma once
#include "views/table/table_panel.h"

class QLabel;
class QLineEdit;

namespace partita::views {

/// A row of the table of questions.
struct QuestionChoice {
  QString name;           ///< "users"
  QStringList arguments;  ///< "NODE"; those in brackets may be left out
  QString help;
  QString usage() const { return (QStringList(name) + arguments).join(' '); }
};

struct QuestionAnswer {
  QString text;                                      ///< in one line
  std::vector<Row> rows;                             ///< choosing one selects its node
  QStringList columns = {};                          ///< of the rows' cells; empty: a cell each
  std::vector<std::pair<QString, int>> places = {};  ///< by row: file and line of the program; empty: they have none
  QStringList artefacts = {};  ///< by row: ids of the graphs or texts that rows of a log are about; empty: they are not
};

/// A field for a question in words, "users addmm", and its answer as rows.
class QuestionsView : public TablePanel {
  Q_OBJECT

 public:
  explicit QuestionsView(QWidget* parent = nullptr);
  void set_questions(const std::vector<QuestionChoice>& questions);
  void set_question(const QString& question);  ///< puts it into the field, to be completed
  void set_answer(const QuestionAnswer& answer);
  QString question() const;
  QString answer() const;

 Q_SIGNALS:
  void asked(QStringList words);

 private:
  QLineEdit* field_;
  QLabel* answer_;
};

}  // namespace partita::views
