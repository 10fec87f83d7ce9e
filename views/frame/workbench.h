#pragma once
// What is around every view.
#include "views/frame/documents.h"
#include "views/frame/drawing.h"
#include "views/frame/following.h"
#include "views/frame/made_views.h"
#include "views/frame/notebook.h"
#include "views/frame/pin_history.h"
#include "views/frame/screen.h"
#include "views/frame/tools.h"
#include "views/frame/window.h"
#include "views/session/jobs.h"
#include "views/session/selection.h"

namespace partita::views {

/// What views work with: what is open, what of it is on the screen, the jobs at work on it, the other views and the
/// window.
class Workbench {
 public:
  /// The window is of a class above this layer.
  Workbench(WorkbenchTools tools, std::unique_ptr<Window> (*make_window)(JobTracker& jobs));

  const WorkbenchTools& tools() const { return tools_; }
  JobTracker& jobs() { return jobs_; }
  Selection& selection() { return selection_; }
  Window& window() { return *window_; }
  const Window& window() const { return *window_; }
  Documents& documents() { return documents_; }
  const Documents& documents() const { return documents_; }
  Drawing& drawing() { return drawing_; }
  Screen& screen() { return screen_; }
  PinHistory& pins() { return pins_; }
  Notebook& notes() { return notes_; }
  Views& views() { return views_; }
  const Views& views() const { return views_; }

  /// Offers an action beside the search field while it fits the document on the screen; elsewhere it is disabled.
  void offer(QAction* action, const QString& text, std::function<bool(const Document&)> fits);

 private:
  const WorkbenchTools tools_;  // before jobs_, which use it until they have ended
  JobTracker jobs_;
  Selection selection_;
  const std::unique_ptr<Window> window_;
  Documents documents_;
  Following following_;
  Drawing drawing_;
  Screen screen_;
  PinHistory pins_;
  Notebook notes_;
  Views views_;  // last: views use the others until their end
};

/// Makes a view by its controller; `tool`: the function of WorkbenchTools that it cannot do without.
template <class C, auto tool = nullptr>
std::unique_ptr<Controller> make_view(Workbench& bench) {
  if constexpr (!std::is_null_pointer_v<decltype(tool)>)
    if (!(bench.tools().*tool)) return nullptr;
  return std::make_unique<C>(bench);
}

}  // namespace partita::views
