#include "views/ranks/ranks_controller.h"

#include <QFileInfo>

#include "views/frame/workbench.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

/// "forward" of "rank_0/forward": the graph that a document is, on any rank.
QString graph_on_ranks(const Document& document) {
  return document.id.mid(document.id.lastIndexOf('/') + 1);
}

}  // namespace

extern const MakeView make_ranks_view = make_view<RanksController>;

RanksController::RanksController(Workbench& bench) : WidgetController(bench) {
  connect(view_->plot(), &LadderPlot::activated, this, &RanksController::go_to_node);
  connect(&bench.documents(), &Documents::closed, this, [this](const QString& path) {
    if (path == path_) path_.clear();
  });
  bench.window().use_alone(view_);
  bench.offer(bench.window().add_command("View", tr("Ranks side by side"), {}, [this] { show(); }), tr("Ranks"),
              [](const Document& document) {
                return QFileInfo(document.path).isDir() && document.id.contains('/') &&
                       rank_in(document.id.section('/', 0, 0).toStdString());
              });
}

void RanksController::show() {
  const Document* document = bench_.documents().current();
  raise();
  view_->plot()->setFocus();  // arrows walk at once
  if (!document || !QFileInfo(document->path).isDir())
    return view_->set_note(tr("Open a folder with the graphs or logs of a job's ranks"));
  const QString graph = graph_on_ranks(*document);
  if (document->path == path_ && graph == graph_) return;
  view_->set_note(tr("reading…"));
  using Made = std::shared_ptr<const RankLadder>;
  bench_.jobs().start<Made>(
      tr("Ranks of %1").arg(bench_.documents().title_of(document->path)), "ranks", this,
      [path = document->path.toStdString(), graph = graph.toStdString()](const Progress& progress) -> Result<Made> {
        TRY(RankLadder ladder, read_ladder(path, graph, &progress));
        return std::make_shared<const RankLadder>(std::move(ladder));
      },
      [this, path = document->path, graph](Result<Made> made) {
        if (!made) return view_->set_note(text(made.error().line()));
        path_ = path;
        graph_ = graph;
        view_->set_ladder(*made);
        bench_.window().name_page(view_, bench_.documents().title_of(path));
      });
}

void RanksController::set_document(const Document& document) {
  if (on_screen() && (document.path != path_ || graph_on_ranks(document) != graph_)) show();
}

/// The call in the graph of the lane's first rank.
void RanksController::go_to_node() {
  const LadderPlot& plot = *view_->plot();
  const RankLadder* ladder = plot.ladder();
  if (!ladder || plot.row() < 0) return;
  const RankLadder::Row& row = ladder->rows[static_cast<std::size_t>(plot.row())];
  const GraphCollective* call = ladder->call(row, static_cast<std::size_t>(plot.lane()));
  if (!call) return;
  const int rank = ladder->lanes[static_cast<std::size_t>(plot.lane())].front();
  const QString id = text(id_in_folder(ladder->folder.ranks[static_cast<std::size_t>(rank)]));
  if (!bench_.documents().find(path_ + "#" + id)) return bench_.window().tell(tr("%1 is not open").arg(id));
  bench_.window().close_page();
  bench_.selection().select({path_ + "#" + id, text(call->node->name())});
}

QStringList RanksController::command() const {
  if (!on_screen() || path_.isEmpty()) return {};
  return {"query", "collectives", "--graph", shell_word(graph_)};
}

}  // namespace partita::views
