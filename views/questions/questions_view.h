#pragma once

#include <QLabel>
#include <QLineEdit>
#include <span>

#include "app/tasks/queries.h"
#include "views/questions/curve_plot.h"
#include "views/table/table_panel.h"

namespace partita::views {

QString usage_of(const Query& question);  ///< "users NODE"

/// A field for a question in words, "users addmm", and its answer as rows, with a plot where it has curves.
class QuestionsView : public TablePanel {
  Q_OBJECT

 public:
  explicit QuestionsView(QWidget* parent = nullptr);
  void set_questions(std::span<const Query> questions);
  void set_question(const QString& question);  ///< puts it into the field, to be completed
  /// Choosing a row selects its node.
  void set_answer(const QueryAnswer& answer);
  QString question() const { return field_->text(); }
  QString answer() const { return answer_->text(); }

 Q_SIGNALS:
  void asked(QStringList words);

 private:
  QLineEdit* field_;
  QLabel* answer_;
  CurvePlot* plot_;
};

}  // namespace partita::views
