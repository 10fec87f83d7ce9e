#include "views/timeline/timeline_controller.h"

#include <algorithm>

#include "core/load/records.h"
#include "views/frame/workbench.h"

namespace partita::views {

extern const MakeView make_timeline_view = make_view<TimelineController>;

TimelineController::TimelineController(Workbench& bench) : WidgetController(bench) {
  connect(view_, &TimelineView::record_asked, this, &TimelineController::show_graph);
  connect(&bench.documents(), &Documents::closed, this, [this](const QString& path) {
    if (path == path_) path_.clear();
  });
  bench.window().use_alone(view_);
  bench.offer(
      bench.window().add_command("View", tr("Times of compiling"), {}, [this] { show(); }), tr("Times"),
      [this](const Document& document) { return std::ranges::any_of(records_of(document.path), has_timeline); });
}

std::vector<Artefact> TimelineController::records_of(const QString& path) const {
  std::vector<Artefact> out;
  for (const auto& [key, document] : bench_.documents().all())
    if (document->path == path && !document->id.isEmpty()) out.push_back(document->artefact);
  return out;
}

void TimelineController::show() {
  const Document* document = bench_.documents().current();
  raise();
  view_->plot()->setFocus();  // arrows walk at once
  if (!document) return view_->set_note(tr("Open a log that PyTorch wrote with TORCH_TRACE"));
  if (document->path == path_) return;
  view_->set_note(tr("reading…"));
  using Made = std::shared_ptr<const Timeline>;
  bench_.jobs().start<Made>(
      tr("Times of %1").arg(bench_.documents().title_of(document->path)), "timeline", this,
      [loaded = Loaded{document->path.toStdString(), records_of(document->path), {}}](const Progress&) -> Result<Made> {
        return std::make_shared<const Timeline>(make_timeline(loaded));
      },
      [this, path = document->path](Result<Made> made) {
        if (!made) return bench_.window().report(made.error());
        path_ = path;
        view_->set_timeline(*made);
        bench_.window().name_page(view_, bench_.documents().title_of(path));
      });
}

void TimelineController::set_document(const Document& document) {
  if (on_screen() && document.path != path_) show();
}

/// The first graph of the record's compilation.
void TimelineController::show_graph(const QString& record) {
  const Document* of = bench_.documents().find(path_ + "#" + record);
  if (!of) return;
  for (const auto& [key, document] : bench_.documents().all()) {
    const Artefact& a = document->artefact;
    if (document->path != path_ || document->id.isEmpty() || !a.is_graph() || a.group != of->artefact.group ||
        log_of(a) != log_of(of->artefact))
      continue;
    bench_.window().close_page();
    return bench_.screen().show(key);
  }
  bench_.window().set_status(tr("The log has no graph of %1").arg(QString::fromStdString(of->artefact.group)), {});
}

QStringList TimelineController::command() const {
  return on_screen() && !path_.isEmpty() ? QStringList{"query", "times"} : QStringList();
}

}  // namespace partita::views
