#pragma once
#include "views/history/history_view.h"
#include "views/window/controller.h"

namespace partita::views {

/// Reads checks and runs of the past from the store.
class HistoryController : public Controller {
 public:
  explicit HistoryController(Workbench& bench);
  QWidget* widget() override { return view_; }
  HistoryView* view() { return view_; }

  void show() override;
  void set_theme(const Theme& theme) override { view_->set_theme(theme); }

 private:
  void read_past();
  void read_reports(const std::vector<std::int64_t>& checks);

  HistoryView* view_;
};

}  // namespace partita::views
