#include "views/window/controller.h"

#include "views/window/workbench.h"

namespace partita::views {

#define VIEW(name, title, place, key) std::unique_ptr<Controller> make_##name##_view(Workbench& bench);
#include "views/views.def"
#undef VIEW

std::span<const ViewRow> view_rows() {
  static constexpr ViewRow rows[] = {
#define VIEW(name, title, place, key) {#name, title, ViewPlace::place, key, make_##name##_view},
#include "views/views.def"
#undef VIEW
  };
  return rows;
}

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
