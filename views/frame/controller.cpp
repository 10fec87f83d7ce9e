#include "views/frame/controller.h"

#include "views/frame/workbench.h"

namespace partita::views {

QWidget* window_of(Workbench& bench) {
  return &bench.window();
}

void Controller::raise() {
  bench_.window().show_view(widget());
}

void Controller::go() {
  show();
  bench_.window().focus(widget());
}

bool Controller::on_screen() const {
  return bench_.window().in_front(widget());
}

}  // namespace partita::views
