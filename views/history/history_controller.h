#pragma once
#include "views/frame/controller.h"
#include "views/history/history_view.h"

namespace partita::views {

/// Reads checks, runs and cache entries of the past from the store.
class HistoryController : public WidgetController<HistoryView> {
 public:
  explicit HistoryController(Workbench& bench);

  void show() override;

 private:
  void read_past();
  void read_reports(const std::vector<std::int64_t>& checks);
  void explain(const std::string& a, const std::string& b);
};

}  // namespace partita::views
