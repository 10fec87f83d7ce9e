#include "views/frame/made_views.h"

#include <algorithm>

#include "views/look/inputs_box.h"

namespace partita::views {

bool Views::show(const QString& name) const {
  const auto found = std::ranges::find(views_, name, &Named::name);
  if (found == views_.end()) return false;
  found->view->show();
  return true;
}

void Views::set_inputs(const QString& path) {
  inputs_ = path;
  each([&](Controller& view) {
    if (InputsBox* box = view.inputs()) box->set_path(path);
  });
}

}  // namespace partita::views
