#include "views/frame/workbench.h"

#include <QAction>

namespace partita::views {

Workbench::Workbench(WorkbenchTools tools, std::unique_ptr<Window> (*make_window)(JobTracker& jobs))
    : tools_(std::move(tools)),
      window_(make_window(jobs_)),
      documents_(jobs_, *window_),
      following_(documents_),
      drawing_(documents_, jobs_, *window_),
      screen_(documents_, drawing_, selection_, views_, *window_),
      pins_(documents_, drawing_, screen_, *window_),
      notes_(documents_, screen_, jobs_, *window_, tools_.store_file) {}

void Workbench::offer(QAction* action, const QString& text, std::function<bool(const Document&)> fits) {
  action->setEnabled(false);
  window_->add_tool(action, text);
  QObject::connect(&screen_, &Screen::showing, action, [action, fits = std::move(fits)](const Document* document) {
    action->setEnabled(document && fits(*document));
  });
}

}  // namespace partita::views
