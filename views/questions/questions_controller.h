#pragma once
#include "views/frame/controller.h"
#include "views/questions/questions_view.h"

namespace partita::views {

/// Asks the questions of `partita query` about the graph on the screen. Each is a command of the palette, too.
class QuestionsController : public WidgetController<QuestionsView> {
 public:
  explicit QuestionsController(Workbench& bench);
  QStringList command() const override;
  void wait_for(const Document& document) override;

  void ask(const QStringList& words);

 private:
  void begin(const Query& question);

  void go_to(int row);
  void open_source(int row);

  QStringList words_;           ///< of the answer on the screen
  QString about_;               ///< the file, when the answer is about a whole log
  std::vector<QueryRow> rows_;  ///< of such an answer
};

}  // namespace partita::views
