#include "views/questions/questions_controller.h"

#include <QDesktopServices>
#include <QFileInfo>
#include <QUrl>
#include <algorithm>

#include "core/base/mapped.h"
#include "views/frame/workbench.h"
#include "views/look/format.h"

namespace partita::views {

extern const MakeView make_questions_view = make_view<QuestionsController, &WorkbenchTools::ask>;

QuestionsController::QuestionsController(Workbench& bench) : WidgetController(bench) {
  view_->set_questions(bench.tools().questions);
  connect(view_, &QuestionsView::asked, this, &QuestionsController::ask);
  connect(view_, &TablePanel::row_chosen, this, &QuestionsController::go_to);
  connect(view_, &TablePanel::row_activated, this, &QuestionsController::open_source);
  for (const Query& q : bench.tools().questions) {
    const QString help = text(q.help);
    bench.window().add_command("Ask", tr("%1 (%2)").arg(help.left(1).toUpper() + help.mid(1), usage_of(q)), {},
                               [this, &q] { begin(q); });
  }
}

QStringList QuestionsController::command() const {
  if (!on_screen() || words_.isEmpty()) return {};
  QStringList words{"query"};
  for (const QString& word : words_) words << shell_word(word);
  return words << inputs_words(bench_.views().inputs());
}

/// Lists the questions, until one is asked. An answer about a whole log stays while its graphs are looked at.
void QuestionsController::wait_for(const Document& document) {
  if (!about_.isEmpty() && document.path == about_) return;
  words_.clear();
  about_.clear();
  rows_.clear();
  QueryAnswer all{tr("What can be asked, here or from the menu Ask:").toStdString(), {}};
  for (const Query& q : bench_.tools().questions)
    all.rows.push_back({{}, QString("%1: %2").arg(usage_of(q), text(q.help)).toStdString(), {}});
  view_->set_answer(all);
}

/// To the graph and the node that a row is about, and so to its line in the code.
void QuestionsController::go_to(int row) {
  const QString node = view_->model()->rows()[static_cast<std::size_t>(row)].node;
  if (row < std::ssize(rows_) && !rows_[static_cast<std::size_t>(row)].artefact.empty())
    bench_.selection().select({about_ + "#" + text(rows_[static_cast<std::size_t>(row)].artefact), node});
  else if (!node.isEmpty())
    bench_.selection().select_node(node);
}

/// The program's file that a row of a log is about, in the program that the desktop has for it.
void QuestionsController::open_source(int row) {
  if (row < 0 || row >= std::ssize(rows_)) return;
  const StackFrame& at = rows_[static_cast<std::size_t>(row)].at;
  const QString file = text(at.file);
  if (file.isEmpty()) return bench_.window().tell(tr("This row is about no line of the program"));
  const QString place = QString("%1:%2").arg(file).arg(at.line);
  if (!QFileInfo(file).isAbsolute() || !QFileInfo(file).isFile())
    return bench_.window().tell(tr("%1 is not on this machine").arg(place));
  const bool opened = QDesktopServices::openUrl(QUrl::fromLocalFile(file));
  bench_.window().tell((opened ? tr("Opened %1") : tr("The desktop has no program that opens %1")).arg(place));
}

/// Fills in the chosen node where the question takes one. The user completes the rest.
void QuestionsController::begin(const Query& question) {
  raise();
  QStringList words{text(question.name)};
  const QString node = bench_.selection().spot().node;
  if (!question.arguments.empty() && question.arguments[0] == "NODE" && !node.isEmpty()) words << node;
  const auto needed = std::ranges::count_if(question.arguments, [](std::string_view a) { return !a.starts_with('['); });
  view_->set_question(words.join(' ') + (words.size() <= needed ? " " : ""));
  if (words.size() > needed) ask(words);
}

void QuestionsController::ask(const QStringList& words) {
  const Document* document = bench_.documents().current();
  if (!document) return;
  raise();
  bench_.jobs().start<QueryAnswer>(
      tr("Answer: %1").arg(words.join(' ')), "question", this,
      [path = document->path.toStdString(), artefact = document->artefact,
       inputs = bench_.views().inputs().toStdString(), asked = mapped(words, &QString::toStdString),
       ask = bench_.tools().ask](const Progress& progress) { return ask(path, artefact, inputs, asked, progress); },
      [this, words, path = document->path, key = document->key](Result<QueryAnswer> answer) {
        if (!bench_.documents().current() || bench_.documents().current()->key != key) return;
        words_ = words;
        const bool of_log = answer && !answer->columns.empty();
        rows_ = of_log ? answer->rows : std::vector<QueryRow>();
        about_ = of_log && !rows_.empty() ? path : QString();
        view_->set_answer(answer ? *answer : QueryAnswer{answer.error().line(), {}});
      });
}

}  // namespace partita::views
