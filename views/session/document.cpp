#include "views/session/document.h"

#include <algorithm>

#include "core/ir/print.h"
#include "views/graph/frames.h"

namespace partita::views {

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

std::unordered_set<std::string> folds_of_overview(const std::shared_ptr<const Graph>& graph, const CutSummary* cut) {
  constexpr int kMostCards = 12;  // on a side: with inputs, what is readable in a window of 900 pixels' height
  PictureOptions options;
  options.cut = cut;
  return overview_folds(make_picture(graph, options), kMostCards);
}

Result<Rendering> render(const Document& document, const TextWidth& text_width, const Progress& progress) {
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
  constexpr std::size_t kLarge = 500;
  const bool first = document.graph == nullptr;
  out.folded = first && out.graph->size() > kLarge ? folds_of_overview(out.graph, options.cut) : document.folded;
  options.folded = out.folded;
  out.scene = make_scene(out.graph, options, document.scene.get());
  return out;
}

}  // namespace partita::views
