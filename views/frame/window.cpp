#include "views/frame/window.h"

#include "core/base/result.h"
#include "views/look/format.h"

namespace partita::views {

void Window::report(const Diagnostic& problem) {
  if (problem.fault == Fault::Cancelled) return;
  QStringList details{text(problem.line())};
  for (const std::string& note : problem.notes) details << "  " + text(note);
  details << text(problem.code);
  show_problem(text(problem.line()), details.join('\n'));
}

}  // namespace partita::views
