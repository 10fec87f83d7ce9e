#pragma once
#include "views/frame/controller.h"
#include "views/timeline/timeline_view.h"

namespace partita::views {

/// Shows the times of compiling of the file that the document on the screen is of.
class TimelineController : public WidgetController<TimelineView> {
 public:
  explicit TimelineController(Workbench& bench);
  void show() override;
  void set_document(const Document& document) override;
  QStringList command() const override;

 private:
  /// What of a file tells times.
  std::vector<Artefact> records_of(const QString& path) const;
  void show_graph(const QString& record);

  QString path_;  ///< whose times are shown; empty: none
};

}  // namespace partita::views
