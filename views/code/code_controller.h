#pragma once
#include "views/code/code_view.h"
#include "views/window/controller.h"

namespace partita::views {

/// A view that shows text, which the user searches while it is the one that is read.
class ReadingController : public Controller {
 public:
  explicit ReadingController(Workbench& bench) : Controller(bench), view_(new CodeView) {}
  QWidget* widget() override { return view_; }
  CodeView* view() { return view_; }

  void set_theme(const Theme& theme) override { view_->set_theme(theme); }
  std::optional<int> search(const QString& needle) override;
  bool find_next(bool backwards) override;

 protected:
  virtual bool is_read() const = 0;
  void set_code(const std::shared_ptr<const CodeDocument>& code);

  CodeView* view_;
};

/// The code of graphs, docked beside the picture.
class CodeController : public ReadingController {
 public:
  explicit CodeController(Workbench& bench);
  void wait_for(const Document&) override { set_code(nullptr); }
  void set_document(const Document& document) override;
  void select(const QString& node) override { view_->select(node); }

 private:
  bool is_read() const override { return view_->document() != nullptr; }
};

/// A page for documents that are plain text.
class TextController : public ReadingController {
 public:
  explicit TextController(Workbench& bench);
  void wait_for(const Document& document) override;
  void set_document(const Document& document) override;

 private:
  bool is_read() const override { return view_->document() != nullptr && on_screen(); }
};

}  // namespace partita::views
