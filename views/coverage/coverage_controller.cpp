#include "views/coverage/coverage_view.h"
#include "views/frame/workbench.h"

namespace partita::views {
namespace {

class CoverageController : public WidgetController<CoverageView> {
 public:
  explicit CoverageController(Workbench& bench) : WidgetController(bench) {
    bench.window().add_command("View", tr("Operator coverage"), {}, [this] { show(); });
  }
  void show() override {
    if (view_->model()->rowCount() == 0) view_->set_rows(coverage_rows());
    raise();
  }
};

}  // namespace

extern const MakeView make_coverage_view = make_view<CoverageController>;

}  // namespace partita::views
