#include "views/questions/questions_view.h"

#include <QCompleter>
#include <QSplitter>
#include <algorithm>

#include "views/look/arrange.h"
#include "views/look/elided_label.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

std::vector<Row> rows_of(const QueryAnswer& answer) {
  std::vector<Row> rows;
  for (const QueryRow& row : answer.rows) {
    Row& shown = rows.emplace_back(text(row.node), std::vector<Cell>());
    for (const std::string& cell : row.cells) shown.cells.emplace_back(text(cell));
    if (row.cells.empty()) shown.cells.emplace_back(text(row.text));
  }
  return rows;
}

}  // namespace

QString usage_of(const Query& question) {
  QStringList words(text(question.name));
  for (const std::string_view argument : question.arguments) words << text(argument);
  return words.join(' ');
}

QuestionsView::QuestionsView(QWidget* parent) : TablePanel({tr("Answer")}, parent) {
  setAccessibleName(tr("Answers"));
  field_ = new QLineEdit;
  field_->setAccessibleName(tr("Question"));
  field_->setPlaceholderText(tr("A question, as: users addmm"));
  field_->setMinimumWidth(220);
  answer_ = new ElidedLabel;
  connect(field_, &QLineEdit::returnPressed, this, [this] {
    if (const QStringList words = question().split(' ', Qt::SkipEmptyParts); !words.isEmpty()) Q_EMIT asked(words);
  });
  setFocusProxy(field_);
  bar()->insertWidget(0, field_);
  bar()->insertWidget(1, answer_, 3);
  plot_ = new CurvePlot;
  auto* split = new QSplitter;
  delete layout()->replaceWidget(view(), split);
  split->addWidget(view());
  split->addWidget(plot_);
  split->setStretchFactor(0, 1);  // rows are read, the curve is looked at
  split->setStretchFactor(1, 0);
  setTabOrder(field_, view());
}

void QuestionsView::set_questions(std::span<const Query> questions) {
  QStringList usages, lines;
  for (const Query& q : questions) {
    usages << text(q.name);
    lines << QString("%1: %2").arg(usage_of(q), text(q.help));
  }
  auto* completer = new QCompleter(usages, field_);
  completer->setCaseSensitivity(Qt::CaseInsensitive);
  field_->setCompleter(completer);
  field_->setToolTip(lines.join('\n'));
}

void QuestionsView::set_question(const QString& question) {
  field_->setText(question);
  field_->setFocus();
  field_->end(false);
}

void QuestionsView::set_answer(const QueryAnswer& answer) {
  answer_->setText(text(answer.text));
  QStringList columns = texts(answer.columns);
  if (columns.isEmpty()) columns << tr("Answer");
  if (model()->columns() != columns) model()->set_columns(columns);
  set_rows(rows_of(answer));
  plot_->set_curves(answer.curves);
  constexpr int kWidest = 460;  // reasons are sentences
  for (int c = 0; c + 1 < columns.size(); ++c) {
    view()->resizeColumnToContents(c);
    view()->setColumnWidth(c, std::min(view()->columnWidth(c) + 12, kWidest));
  }
  if (field_->hasFocus() && !answer.columns.empty() && !answer.rows.empty()) view()->setFocus();  // an arrow goes on
}

}  // namespace partita::views
