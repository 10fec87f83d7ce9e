#include "views/session/document.h"

#include <QDir>
#include <QFileInfo>
#include <algorithm>

#include "core/ir/print.h"
#include "views/graph/frames.h"
#include "views/look/format.h"

namespace partita::views {

QString group_title(const Artefact& artefact, const QString& opened) {
  QString group = QString::fromStdString(artefact.group);
  const QFileInfo file(opened);
  if (group == file.path()) return {};
  if (!file.isDir()) return group;
  if (group.startsWith(opened)) return group.mid(opened.size() + 1);
  // The compilation of a log in the folder.
  const QFileInfo log(QString::fromStdString(artefact.where.file));
  QStringList steps{QDir(opened).relativeFilePath(log.path()), log_title(log.completeBaseName()), group};
  steps.removeAll({});
  steps.removeAll(".");
  return steps.join("/");
}

PartitionOptions partition_options(const Document& document) {
  PartitionOptions options;
  options.memory_budget = document.memory_budget;
  for (const auto& [name, pin] : document.pins) {
    if (pin == Pin::Save) options.save.push_back(name);
    if (pin == Pin::Recompute) options.recompute.push_back(name);
  }
  std::sort(options.save.begin(), options.save.end());
  std::sort(options.recompute.begin(), options.recompute.end());
  return options;
}

namespace {

// What is folded so that the whole picture is readable in this room: as little as it takes, by steps. If it cannot be,
// what makes it largest.
std::unordered_set<std::string> folds_that_fit(const std::shared_ptr<const Graph>& graph, PictureOptions options,
                                               QSizeF room, bool unfolded_too) {
  constexpr double kReadable = 0.62;  // below, cards have no second line
  constexpr std::size_t kLarge = 500;
  options.folded.clear();
  const Picture open = make_picture(graph, options);
  std::unordered_set<std::string> best;
  double best_zoom = 0;
  constexpr int kUnfolded = 0;
  for (const int most : {kUnfolded, 40, 24, 16, 12, 8, 5, 3}) {  // cards on a side
    if (most == kUnfolded && (!unfolded_too || graph->size() > kLarge)) continue;
    auto folded = most == kUnfolded ? std::unordered_set<std::string>() : overview_folds(open, most);
    if (best_zoom > 0 && folded == options.folded) continue;
    options.folded = std::move(folded);
    const Box bounds = lay_out(most == kUnfolded ? open : make_picture(graph, options)).bounds;
    const double zoom = std::min(room.width() / bounds.w, room.height() / bounds.h);
    if (zoom <= best_zoom) continue;
    best_zoom = zoom;
    best = options.folded;
    if (zoom >= kReadable) break;
  }
  return best;
}

}  // namespace

Result<Rendering> render(const Document& document, const TextWidth& text_width, QSizeF room, const Progress& progress) {
  Rendering out;
  out.graph = document.graph;
  out.code = document.code;
  if (document.kind == ArtefactKind::Text) {
    TRY(std::string text, document.artefact.text());
    out.code = std::make_shared<CodeDocument>(QString::fromStdString(text), nullptr);
    return out;
  }
  if (!out.graph) {
    progress.at(-1, "reading the graph");
    TRY(auto graph, document.artefact.graph());
    out.graph = std::move(graph);
  }
  TRY_DO(check_cancelled(&progress));
  if (!out.code) out.code = std::make_shared<CodeDocument>(QString::fromStdString(print(*out.graph)), out.graph.get());
  PictureOptions options;
  options.text_width = text_width;
  if (document.kind != ArtefactKind::Backward && document.kind != ArtefactKind::PostGrad && is_joint(*out.graph)) {
    progress.at(-1, "cutting forward from backward");
    auto partition = partita::partition(*out.graph, partition_options(document));
    if (partition) {
      out.cut = std::make_shared<CutSummary>(CutSummary::of(*partition));
    } else if (!document.pins.empty()) {
      return std::move(partition).error();  // a pin that is not possible: the picture stays as it was
    } else {
      out.cut_problem = std::move(partition).error();
    }
  }
  TRY_DO(check_cancelled(&progress));
  progress.at(-1, "laying out");
  options.cut = out.cut.get();
  out.folded = document.folding == Folding::Asked
                   ? document.folded
                   : folds_that_fit(out.graph, options, room, document.folding == Folding::Fit);
  options.folded = out.folded;
  out.scene = make_scene(out.graph, options, document.scene.get());
  return out;
}

}  // namespace partita::views
