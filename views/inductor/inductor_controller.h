#pragma once
#include <map>

#include "app/tasks/locate.h"
#include "app/tasks/minify_question.h"
#include "views/frame/controller.h"
#include "views/inductor/inductor_view.h"

namespace partita::views {

/// Finds what PyTorch's inductor does wrong with the graph on the screen, colours its nodes by that, and puts the wrong
/// kernel's code beside the picture.
class InductorController : public WidgetController<InductorView> {
 public:
  explicit InductorController(Workbench& bench);

  void show() override { find(view_->request()); }
  QStringList command() const override;
  void wait_for(const Document& document) override;
  void set_document(const Document& document) override;

  void find(const LocateRequest& request);
  /// Writes the graph and the inputs with which the fault was found, for a bug report.
  void write_repro(const QString& folder);

 private:
  struct Search {
    LocateRequest request;
    std::vector<Located> found;
  };
  void take(const QString& key, Search done);
  void note_facts(Document& document) const;
  void show_code();
  void minify();
  void ask_repro_folder();
  void copy_command();
  QStringList words_of(const LocateRequest& request) const;
  MinifyRequest minification() const;
  const Search* last() const;  ///< of the document on the screen; null: there was none

  std::map<QString, Search> searches_;  ///< by the document's key
  QString shown_;                       ///< key of the document whose search the view shows
  int job_ = 0;
};

}  // namespace partita::views
