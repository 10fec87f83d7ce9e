#include "views/inspector/inspector.h"
#include "views/window/workbench.h"

namespace partita::views {
namespace {

class InspectorController : public Controller {
 public:
  explicit InspectorController(Workbench& bench) : Controller(bench), view_(new Inspector) {
    connect(view_, &Inspector::node_chosen, this,
            [&bench](const QString& node) { bench.selection().select_node(node); });
    connect(view_, &Inspector::pin_asked, &bench, &Workbench::pin);
  }
  QWidget* widget() override { return view_; }
  void wait_for(const Document&) override { view_->show_node(nullptr, {}, nullptr); }
  void select(const QString& node) override {
    const Document& document = *bench_.current();
    auto facts = document.facts.find(node.toStdString());
    view_->show_node(&document, node, facts == document.facts.end() ? nullptr : &facts->second);
  }
  void set_theme(const Theme& theme) override { view_->set_theme(theme); }

 private:
  Inspector* view_;
};

}  // namespace

std::unique_ptr<Controller> make_node_view(Workbench& bench) {
  return std::make_unique<InspectorController>(bench);
}

}  // namespace partita::views
