#include "views/code/code_controller.h"

#include "views/frame/workbench.h"

namespace partita::views {

extern const MakeView make_code_view = make_view<CodeController>;
extern const MakeView make_text_view = make_view<TextController>;

std::optional<int> ReadingController::search(const QString& needle) {
  view_->set_search(needle);
  return is_read() ? std::optional(view_->document()->count(needle)) : std::nullopt;
}

bool ReadingController::find_next(bool backwards) {
  if (is_read()) view_->find_next(backwards);
  return is_read();
}

void ReadingController::set_code(const std::shared_ptr<const CodeDocument>& code) {
  if (view_->document() != code.get()) view_->set_document(code);
}

CodeController::CodeController(Workbench& bench) : ReadingController(bench) {
  connect(view_, &CodeView::node_chosen, &bench.selection(), &Selection::select_node);
  bench.window().add_command("View", tr("Fold the code by module"), {}, [this] { view_->fold_all(true); });
  bench.window().add_command("View", tr("Unfold the code"), {}, [this] { view_->fold_all(false); });
  bench.window().add_command("View", tr("Focus the code"), QKeySequence("Shift+F6"), [this] { view_->setFocus(); });
}

TextController::TextController(Workbench& bench) : ReadingController(bench) {
  view_->setAccessibleName(tr("Text"));
  bench.window().use_alone(view_);
}

void TextController::wait_for(const Document& document) {
  if (document.kind != ArtefactKind::Text) return;
  set_code(nullptr);
  raise();
}

void TextController::set_document(const Document& document) {
  if (!document.scene) {
    set_code(document.code);
    raise();
  } else if (on_screen()) {
    bench_.views().show("graph");
  }
}

}  // namespace partita::views
