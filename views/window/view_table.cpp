#include "views/window/view_table.h"

namespace partita::views {

#define VIEW(name, title, place, key) extern const MakeView make_##name##_view;
#include "views/views.def"
#undef VIEW

std::span<const ViewRow> view_rows() {
  static const ViewRow rows[] = {
#define VIEW(name, title, place, key) {#name, title, ViewPlace::place, key, make_##name##_view},
#include "views/views.def"
#undef VIEW
  };
  return rows;
}

}  // namespace partita::views
