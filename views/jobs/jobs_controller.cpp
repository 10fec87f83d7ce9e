#include "views/frame/workbench.h"
#include "views/jobs/jobs_view.h"

namespace partita::views {
namespace {

/// Lists jobs while they can be seen.
class JobsController : public WidgetController<JobsView> {
 public:
  explicit JobsController(Workbench& bench) : WidgetController(bench) {
    view_->setObjectName("jobs");
    connect(&bench.jobs(), &JobTracker::changed, this, [this] {
      if (on_screen()) refresh();
    });
    connect(view_, &JobsView::cancel_asked, &bench.jobs(), &JobTracker::cancel);
    connect(&bench.window(), &Window::panel_changed, this, [this] {
      if (on_screen()) refresh();
    });
    connect(&bench.window(), &Window::jobs_asked, this, [this] { show(); });
    bench.window().add_command("View", tr("Jobs"), QKeySequence("Ctrl+Shift+J"), [this] { go(); });
  }

 private:
  void refresh() { view_->set_jobs(bench_.jobs().rows(), bench_.jobs().history()); }
};

}  // namespace

extern const MakeView make_jobs_view = make_view<JobsController>;

}  // namespace partita::views
