#pragma once
#include "views/compare/compare_view.h"
#include "views/frame/controller.h"

namespace partita::views {

/// Runs the current graph on several backends and compares what they compute.
class CompareController : public WidgetController<CompareView> {
  Q_OBJECT

 public:
  explicit CompareController(Workbench& bench);

  void show() override { compare(view_->request()); }
  std::vector<OverlaySource> overlays() override;
  QStringList command() const override;
  void wait_for(const Document&) override;
  void set_document(const Document& document) override;

  void compare(const CompareRequest& request);
  /// How the report of this document was made; what is chosen now when the report is another document's.
  CompareRequest request_of(const Document& document) const;

 Q_SIGNALS:
  void ended(bool with_report);

 private:
  struct Compared {
    CompareRequest request;
    std::vector<Report> reports;
    std::unordered_map<std::string, std::string> shown;  ///< see shown_nodes()
    QString summary, first_wrong;
  };
  void show_reports(const QString& key, Compared done);
  void show_report_of(const QString& key);
  void read_past(const Document& document);

  std::map<QString, Compared> compared_;  ///< the last comparison of each document
  QString shown_;                         ///< the document whose report the table has; empty: none
  int job_ = 0;                           ///< of the running comparison; 0: none
};

}  // namespace partita::views
