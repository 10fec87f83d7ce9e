#include "views/inspector/inspector.h"
#include "views/window/workbench.h"

namespace partita::views {
namespace {

class InspectorController : public WidgetController<Inspector> {
 public:
  explicit InspectorController(Workbench& bench) : WidgetController(bench) {
    connect(view_, &Inspector::node_chosen, &bench, &Workbench::select_node);
    connect(view_, &Inspector::pin_asked, &bench, &Workbench::pin);
  }
  void wait_for(const Document&) override { view_->show_node(nullptr, {}, nullptr); }
  void facts_changed(const Document&) override { select(bench_.selection().spot().node); }
  void set_step(const Document&) override { select(bench_.selection().spot().node); }
  void select(const QString& node) override {
    const Document& document = *bench_.on_screen();
    auto facts = document.facts.find(node.toStdString());
    view_->show_node(&document, node, facts == document.facts.end() ? nullptr : &facts->second);
  }
};

}  // namespace

std::unique_ptr<Controller> make_node_view(Workbench& bench) {
  return std::make_unique<InspectorController>(bench);
}

}  // namespace partita::views
