#include "views/coverage/coverage_view.h"
#include "views/window/workbench.h"

namespace partita::views {
namespace {

class CoverageController : public Controller {
 public:
  explicit CoverageController(Workbench& bench) : Controller(bench), view_(new CoverageView) {
    bench.window().add_command("View", tr("Operator coverage"), {}, [this] { show(); });
  }
  QWidget* widget() override { return view_; }
  void show() override {
    if (view_->model()->rowCount() == 0) view_->set_rows(coverage_rows());
    raise();
  }
  void set_theme(const Theme& theme) override { view_->set_theme(theme); }

 private:
  CoverageView* view_;
};

}  // namespace

std::unique_ptr<Controller> make_coverage_view(Workbench& bench) {
  return std::make_unique<CoverageController>(bench);
}

}  // namespace partita::views
