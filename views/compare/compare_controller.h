#pragma once
#include "views/compare/compare_view.h"
#include "views/window/controller.h"

namespace partita::views {

/// Runs the current graph on two backends and compares what they compute.
class CompareController : public Controller {
  Q_OBJECT

 public:
  explicit CompareController(Workbench& bench);
  QWidget* widget() override { return view_; }
  CompareView* view() { return view_; }

  void show() override { compare(view_->request()); }
  void select(const QString& node) override { view_->select(node); }
  void set_theme(const Theme& theme) override { view_->set_theme(theme); }
  InputsBox* inputs() override { return view_->inputs(); }
  std::vector<OverlaySource> overlays() override;
  QStringList command() const override;

  void compare(const CompareRequest& request);
  /// How the report of this document was made; what is chosen now when the report is another document's.
  CompareRequest request_of(const Document& document) const;

 Q_SIGNALS:
  void ended(bool with_report);

 private:
  void show_report(const QString& key, const CompareRequest& request, const Report& report, double seconds);

  CompareView* view_;
  std::optional<CompareRequest> compared_;  ///< how the report on the screen was made
  QString compared_key_;                    ///< of which document
};

}  // namespace partita::views
