#pragma once
#include "views/frame/controller.h"
#include "views/tensor/tensor_view.h"

namespace partita::views {

/// Computes the values of a node, or of a row of the last comparison, on both backends.
class ValuesController : public WidgetController<TensorView> {
 public:
  explicit ValuesController(Workbench& bench);

  /// The chosen row of the comparison, else the selected node, else the worst row of a new comparison.
  void show() override;

  void look_at(const QString& row);
  void set_document(const Document& document) override;

 private:
  void ask_slice(const Slice& slice);

  QString document_;     ///< key of the one on the screen
  int job_ = 0;          ///< that computes what is to be shown
  bool wanted_ = false;  ///< the worst row, as soon as there is a report
};

}  // namespace partita::views
