#pragma once
#include "views/questions/questions_view.h"
#include "views/window/controller.h"

namespace partita::views {

/// Asks the questions of `partita query` about the graph on the screen. Each is a command of the palette, too.
class QuestionsController : public WidgetController<QuestionsView> {
 public:
  explicit QuestionsController(Workbench& bench);
  QStringList command() const override;
  void wait_for(const Document& document) override;

  void ask(const QStringList& words);

 private:
  void begin(const QuestionChoice& question);

  void go_to(int row);
  void open_source(int row);

  QStringList words_;                            ///< of the answer on the screen
  QString about_;                                ///< the file, when the answer is about a whole log
  QStringList artefacts_;                        ///< of the answer's rows
  std::vector<std::pair<QString, int>> places_;  ///< of the answer's rows
};

}  // namespace partita::views
