#pragma once
#include "views/aot/aot_view.h"
#include "views/frame/controller.h"

namespace partita::views {

class BudgetSlider;

/// Forward and backward of the current joint graph, its memory budget, and how to make a joint graph.
class AotController : public WidgetController<AotView> {
 public:
  explicit AotController(Workbench& bench);

  void show() override;
  void wait_for(const Document&) override;
  void set_document(const Document& document) override;
  bool shows_cut() const override { return true; }
  QStringList command() const override;

  void make_joint();

 private:
  /// With the folds of this one; null: as much folded as it takes to see both halves whole.
  void make_pair(std::shared_ptr<const AotPair> folds);
  void fold(bool of_backward, const QString& frame_key);
  void set_budget(double budget);
  void ask_budget_curve(Document& document);
  void ask_step_bytes(const Document& document);

  BudgetSlider* slider_;
  std::optional<bool> theirs_;  ///< whose cut of the document the user chose; unset: the one that fits its kind
  QString shown_;               ///< key of the document whose halves are shown
};

}  // namespace partita::views
