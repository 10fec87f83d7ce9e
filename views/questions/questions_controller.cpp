#include "views/questions/questions_controller.h"

#include <QDesktopServices>
#include <QFileInfo>
#include <QUrl>
#include <algorithm>

#include "views/look/format.h"
#include "views/window/workbench.h"

namespace partita::views {

std::unique_ptr<Controller> make_questions_view(Workbench& bench) {
  return bench.tools().ask ? std::make_unique<QuestionsController>(bench) : nullptr;
}

QuestionsController::QuestionsController(Workbench& bench) : WidgetController(bench) {
  view_->set_questions(bench.tools().questions);
  connect(view_, &QuestionsView::asked, this, &QuestionsController::ask);
  connect(view_, &TablePanel::row_chosen, this, &QuestionsController::go_to);
  connect(view_, &TablePanel::row_activated, this, &QuestionsController::open_source);
  for (const QuestionChoice& q : bench.tools().questions)
    bench.window().add_command("Ask", tr("%1 (%2)").arg(q.help.left(1).toUpper() + q.help.mid(1), q.usage()), {},
                               [this, q] { begin(q); });
}

QStringList QuestionsController::command() const {
  if (!on_screen() || words_.isEmpty()) return {};
  QStringList words{"query"};
  for (const QString& word : words_) words << shell_word(word);
  if (bench_.inputs().isEmpty()) return words << "--random-weights" << "0";
  return words << "--inputs" << shell_word(bench_.inputs());
}

/// Lists the questions, until one is asked. An answer about a whole log stays while its graphs are looked at.
void QuestionsController::wait_for(const Document& document) {
  if (!about_.isEmpty() && document.path == about_) return;
  words_.clear();
  about_.clear();
  artefacts_.clear();
  places_.clear();
  QuestionAnswer all{tr("What can be asked, here or from the menu Ask:"), {}};
  for (const QuestionChoice& q : bench_.tools().questions)
    all.rows.push_back({{}, {Cell(QString("%1: %2").arg(q.usage(), q.help), Tone::Dim)}});
  view_->set_answer(all);
}

/// To the graph and the node that a row is about, and so to its line in the code.
void QuestionsController::go_to(int row) {
  const QString node = view_->model()->rows()[static_cast<std::size_t>(row)].node;
  if (const QString id = artefacts_.value(row); !id.isEmpty())
    bench_.selection().select({about_ + "#" + id, node});
  else if (!node.isEmpty())
    bench_.select_node(node);
}

/// The program's file that a row of a log is about, in the program that the desktop has for it.
void QuestionsController::open_source(int row) {
  if (row < 0 || row >= std::ssize(places_)) return;
  const auto& [file, line] = places_[static_cast<std::size_t>(row)];
  if (file.isEmpty()) return bench_.window().tell(tr("This row is about no line of the program"));
  const QString place = QString("%1:%2").arg(file).arg(line);
  if (!QFileInfo(file).isAbsolute() || !QFileInfo(file).isFile())
    return bench_.window().tell(tr("%1 is not on this machine").arg(place));
  const bool opened = QDesktopServices::openUrl(QUrl::fromLocalFile(file));
  bench_.window().tell((opened ? tr("Opened %1") : tr("The desktop has no program that opens %1")).arg(place));
}

/// Fills in the chosen node where the question takes one. The user completes the rest.
void QuestionsController::begin(const QuestionChoice& question) {
  raise();
  QStringList words{question.name};
  const QString node = bench_.selection().spot().node;
  if (question.arguments.value(0) == "NODE" && !node.isEmpty()) words << node;
  const auto needed = std::ranges::count_if(question.arguments, [](const QString& a) { return !a.startsWith('['); });
  view_->set_question(words.join(' ') + (words.size() <= needed ? " " : ""));
  if (words.size() > needed) ask(words);
}

void QuestionsController::ask(const QStringList& words) {
  const Document* document = bench_.current();
  if (!document) return;
  raise();
  bench_.jobs().start<QuestionAnswer>(
      tr("Answer: %1").arg(words.join(' ')), "question", this,
      [path = document->path, artefact = document->artefact, inputs = bench_.inputs(), words,
       ask = bench_.tools().ask](const Progress& progress) { return ask(path, artefact, inputs, words, progress); },
      [this, words, path = document->path, key = document->key](Result<QuestionAnswer> answer) {
        if (!bench_.current() || bench_.current()->key != key) return;
        words_ = words;
        artefacts_ = answer ? answer->artefacts : QStringList();
        places_ = answer ? answer->places : decltype(places_)();
        about_ = artefacts_.isEmpty() ? QString() : path;
        if (!answer) return view_->set_answer({text(answer.error().line()), {}});
        view_->set_answer(*answer);
      });
}

}  // namespace partita::views
