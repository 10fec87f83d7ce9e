#pragma once
#include "views/frame/controller.h"
#include "views/listing/code_view.h"
#include "views/session/document.h"

namespace partita::views {

/// A view that shows text, which the user searches while it is the one that is read.
class ReadingController : public WidgetController<CodeView> {
 public:
  explicit ReadingController(Workbench& bench) : WidgetController(bench) {}

  std::optional<int> search(const QString& needle) override;
  bool find_next(bool backwards) override;

 protected:
  virtual bool is_read() const = 0;
  void set_code(const std::shared_ptr<const CodeDocument>& code);
};

/// The code of graphs, docked beside the picture.
class CodeController : public ReadingController {
 public:
  explicit CodeController(Workbench& bench);
  void wait_for(const Document&) override { set_code(nullptr); }
  void set_document(const Document& document) override { set_code(document.scene ? document.code : nullptr); }
  /// Shows the code of a graph that a pass made, until the document is shown again.
  void show_code(const std::shared_ptr<const CodeDocument>& code) { set_code(code); }

 private:
  bool is_read() const override { return view_->document() != nullptr; }
};

/// A page for documents that are plain text.
class TextController : public ReadingController {
 public:
  explicit TextController(Workbench& bench);
  void show() override {
    if (view_->document()) raise();
  }
  void select(const QString&) override {}  // lines of plain text are no nodes
  void wait_for(const Document& document) override;
  void set_document(const Document& document) override;

 private:
  bool is_read() const override { return view_->document() != nullptr && on_screen(); }
};

}  // namespace partita::views
