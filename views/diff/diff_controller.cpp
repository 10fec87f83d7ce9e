#include "views/diff/diff_controller.h"

#include "views/frame/workbench.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

/// A diff with what it points into.
struct Compared {
  std::vector<Loaded> loaded;
  Diff diff;
};

}  // namespace

extern const MakeView make_diff_view = make_view<DiffController>;

DiffController::DiffController(Workbench& bench) : WidgetController(bench) {
  const auto refresh = [this] { view_->set_files(bench_.documents().tree().paths()); };
  connect(&bench.documents().tree(), &QAbstractItemModel::rowsInserted, this, refresh);
  connect(&bench.documents().tree(), &QAbstractItemModel::rowsRemoved, this, refresh);
  connect(view_, &DiffView::asked, this, &DiffController::compare);
  connect(view_, &DiffView::place_chosen, this, &DiffController::go_to);
  // A comparison that was cancelled leaves what was there before.
  connect(&bench.jobs(), &JobTracker::finished, this, [this](int id) {
    if (id != job_) return;
    if (compared_.isEmpty()) return view_->set_note(tr("cancelled"));
    view_->refresh();
    bench_.window().set_status(tr("Comparison cancelled"), {});
  });
  bench.window().add_command("Graph", tr("Compare what is open, or the ranks of a folder"), {}, [this] { show(); });
}

void DiffController::show() {
  raise();
  compare();
}

void DiffController::compare() {
  const QStringList files = view_->chosen_files();
  if (files.isEmpty()) return view_->set_note(tr("Open two files, or a folder with the logs of several ranks"));
  view_->say(tr("comparing…"));
  using Result = std::shared_ptr<const Compared>;
  job_ = bench_.jobs().start<Result>(
      tr("Compare %1").arg(count_text(files.size(), "file")), "diff", this,
      [files](const Progress& progress) -> partita::Result<Result> {
        auto compared = std::make_shared<Compared>();
        std::vector<const Loaded*> opened;
        for (const QString& file : files) {
          TRY(compared->loaded.emplace_back(), load(file.toStdString(), &progress));
        }
        for (const Loaded& loaded : compared->loaded) opened.push_back(&loaded);
        TRY(compared->diff, diff(opened, &progress));
        return Result(std::move(compared));
      },
      [this, files](partita::Result<Result> compared) {
        job_ = 0;
        compared_ = compared ? files : QStringList();
        if (!compared) return view_->set_note(text(compared.error().message));
        for (const Diagnostic& warning : (*compared)->diff.warnings) bench_.window().log(text(warning.line()), true);
        view_->set_diff(std::shared_ptr<const Diff>(*compared, &(*compared)->diff));
      });
}

void DiffController::go_to(const QString& path, const QString& graph, const QString& node) {
  const QString key = path + "#" + graph;
  Document* document = bench_.documents().find(key);
  if (!document) return bench_.window().set_status(tr("%1 is closed").arg(key), {});
  if (document == bench_.documents().current()) {
    if (!node.isEmpty()) bench_.selection().select_node(node);
    return;
  }
  asked_document_ = key;
  asked_node_ = node;
  bench_.screen().show(key);
}

QStringList DiffController::command() const {
  if (!on_screen() || compared_.isEmpty()) return {};
  return view_->shows_all() ? QStringList{"diff", "--all"} : QStringList{"diff"};
}

// Before the selection follows: the document may have one of its own, from the last time.
void DiffController::set_document(const Document& document) {
  if (document.key == asked_document_ && !asked_node_.isEmpty())
    bench_.documents().find(document.key)->chosen = asked_node_;
  asked_document_.clear();
}

}  // namespace partita::views
