#pragma once
// The table of views.
#include <span>

#include "views/frame/controller.h"

namespace partita::views {

enum class ViewPlace : unsigned char { Left, Page, Right, Tab };

/// A row of the table of views.
struct ViewRow {
  const char* name;   ///< of `--view`, and of the dock in saved layouts
  const char* title;  ///< of the tab or dock; a page with a title has a command "Show TITLE"
  ViewPlace place;
  const char* key;  ///< of "Show TITLE"; empty where the view has a command of its own with a key
  MakeView make;
};

/// All views, in the order of their tabs and docks. A view finds those above it while it is made, and all afterwards.
std::span<const ViewRow> view_rows();

}  // namespace partita::views
