#pragma once
#include "views/tensor/tensor_view.h"
#include "views/window/controller.h"

namespace partita::views {

/// Computes the values of a node, or of a row of the last comparison, on both backends.
class ValuesController : public Controller {
 public:
  explicit ValuesController(Workbench& bench);
  QWidget* widget() override { return view_; }
  TensorView* view() { return view_; }

  /// The chosen row of the comparison, else the selected node, else the worst row of a new comparison.
  void show() override;
  void set_theme(const Theme& theme) override { view_->set_theme(theme); }

  void look_at(const QString& row);

 private:
  void ask_slice(const Slice& slice);

  TensorView* view_;
  bool wanted_ = false;  ///< the worst row, as soon as there is a report
};

}  // namespace partita::views
