#include "views/frame/workbench.h"
#include "views/graph/graph_controller.h"
#include "views/inspector/inspector.h"

namespace partita::views {
namespace {

class InspectorController : public WidgetController<Inspector> {
 public:
  explicit InspectorController(Workbench& bench) : WidgetController(bench) {
    connect(view_, &Inspector::node_chosen, &bench.selection(), &Selection::select_node);
    connect(view_, &Inspector::pin_asked, &bench.pins(), &PinHistory::pin);
    connect(picture_, &GraphView::card_changed, this, [this] {
      if (bench_.documents().current()) select(bench_.selection().spot().node);
    });
  }
  void wait_for(const Document&) override { view_->show_node(nullptr, {}, nullptr); }
  void facts_changed(const Document&) override { select(bench_.selection().spot().node); }
  void set_step(const Document&) override { select(bench_.selection().spot().node); }
  void select(const QString& node) override {
    const Document& document = *bench_.screen().document();
    if (const int module = picture_->chosen_module();
        node.isEmpty() && module >= 0 && picture_->scene()->picture.graph == document.graph)
      return view_->show_module(document, picture_->scene()->picture, module);
    auto facts = document.facts.find(node.toStdString());
    view_->show_node(&document, node, facts == document.facts.end() ? nullptr : &facts->second);
  }

 private:
  GraphView* const picture_ = bench_.views().get<GraphController>().view();
};

}  // namespace

extern const MakeView make_node_view = make_view<InspectorController>;

}  // namespace partita::views
