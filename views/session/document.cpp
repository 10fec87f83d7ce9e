#include "views/session/document.h"

#include <QDir>
#include <QFileInfo>
#include <algorithm>
#include <future>
#include <map>
#include <set>

#include "core/ir/print.h"
#include "core/load/records.h"
#include "views/look/format.h"
#include "views/picture/frames.h"

namespace partita::views {

QStringList groups_of(const Artefact& artefact, const QString& opened) {
  const QString group = text(artefact.group);
  const QFileInfo file(opened);
  QStringList steps;
  if (!file.isDir()) {
    if (group != file.path()) steps << group;
  } else if (group.startsWith(opened)) {
    steps << group.mid(opened.size() + 1);
  } else {
    // The compilation of a log in the folder.
    const QFileInfo log(text(artefact.where.file));
    steps << QDir(opened).relativeFilePath(log.path()) << text(partita::log_title(artefact.where.file)) << group;
  }
  steps.removeAll({});
  steps.removeAll(".");
  return steps;
}

PartitionOptions partition_options(const Document& document) {
  PartitionOptions options;
  options.functorch = document.artefact.functorch;
  if (document.memory_budget) options.memory_budget = document.memory_budget;
  for (const auto& [name, pin] : document.pins) {
    if (pin == Pin::Save) options.save.push_back(name);
    if (pin == Pin::Recompute) options.recompute.push_back(name);
  }
  std::sort(options.save.begin(), options.save.end());
  std::sort(options.recompute.begin(), options.recompute.end());
  return options;
}

Overview fitting(const std::shared_ptr<const Graph>& graph, PictureOptions options, QSizeF room, bool unfolded_too) {
  constexpr double kReadable = 0.8, kReadableNodes = 0.62;  // all of a small graph is worth smaller letters
  constexpr std::size_t kLarge = 500;
  options.folded.clear();
  const Picture open = make_picture(graph, options);
  options.like = &open;
  Overview best;
  double best_zoom = 0;
  const auto readable_with = [&](const std::unordered_set<std::string>& folded) {
    options.folded = folded;
    auto scene = make_scene(graph, options);
    const double zoom = std::min(room.width() / scene->layout.bounds.w, room.height() / scene->layout.bounds.h);
    if (zoom < kReadable && zoom < best_zoom) return false;
    best_zoom = zoom;
    best = {folded, std::move(scene)};
    return true;
  };
  if (unfolded_too && graph->size() <= kLarge && readable_with({}) && best_zoom >= kReadableNodes) return best;
  best_zoom = 0;
  overview_folds(open, readable_with);
  return best;
}

Result<Rendering> read(const Document& document, const Progress& progress) {
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
    auto graph = document.artefact.graph();
    if (!graph) {
      TRY(std::string source, document.artefact.text());
      out.code = std::make_shared<CodeDocument>(QString::fromStdString(source), nullptr);
      out.graph_problem = std::move(graph).error();
      return out;
    }
    out.graph = *std::move(graph);
  }
  TRY_DO(check_cancelled(&progress));
  // Beside the cut, which takes longer.
  std::future<std::shared_ptr<const CodeDocument>> code;
  if (!out.code)
    code = std::async([graph = out.graph]() -> std::shared_ptr<const CodeDocument> {
      return std::make_shared<CodeDocument>(QString::fromStdString(print(*graph)), graph.get());
    });
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
  if (code.valid()) out.code = code.get();
  return out;
}

std::unordered_set<std::string> carried_folds(std::unordered_set<std::string> folded, const Picture& before,
                                              const Picture& now) {
  std::set<std::string_view> left;  // keys
  for (const Frame& frame : now.frames) left.insert(frame.key);
  const auto around = [&](const Frame& frame) -> const Frame* {  // the folded frame that hid it
    for (int at = frame.parent; at >= 0; at = before.frames[at].parent)
      if (before.frames[at].folded) return &before.frames[at];
    return nullptr;
  };
  std::map<std::string_view, bool> known;  // whether it was hidden by a frame that is gone
  std::map<std::pair<Side, std::string_view>, bool> modules;
  std::map<Side, int> more_folded;
  for (const Frame& frame : before.frames) {
    const Frame* hid = around(frame);
    known[frame.key] = hid && !left.contains(hid->key);
    modules[{frame.side, frame.path}] |= frame.folded || hid;
    if (frame.parent < 0) more_folded[frame.side] += frame.folded ? 1 : -1;
  }
  std::vector<char> closed(now.frames.size());
  for (std::size_t i = 0; i < closed.size(); ++i) {  // parents come before children
    const Frame& frame = now.frames[i];
    if (frame.parent >= 0 && closed[frame.parent]) {
      closed[i] = true;  // it is not seen, and opens as it was
      continue;
    }
    const auto same = known.find(frame.key);
    const auto module = modules.find({frame.side, frame.path});
    closed[i] = folded.contains(frame.key) || (same != known.end()       ? same->second
                                               : module != modules.end() ? module->second
                                                                         : more_folded[frame.side] > 0);
    if (closed[i]) folded.insert(frame.key);
  }
  return folded;
}

Result<Rendering> render(const Document& document, const TextWidth& text_width, QSizeF room, const Progress& progress) {
  Rendering out;
  if (document.read) {
    out = *document.read;
  } else {
    TRY(out, read(document, progress));
  }
  if (!out.graph) return out;
  TRY_DO(check_cancelled(&progress));
  progress.at(-1, "laying out");
  PictureOptions options;
  options.text_width = text_width;
  options.cut = out.cut.get();
  if (document.folding == Folding::Asked) {
    out.folded = document.folded;
    if (document.scene && out.cut)
      out.folded = carried_folds(std::move(out.folded), document.scene->picture, make_picture(out.graph, options));
    options.folded = out.folded;
    out.scene = make_scene(out.graph, options, document.scene.get());
  } else {
    Overview overview = fitting(out.graph, options, room, document.folding == Folding::Fit);
    out.folded = std::move(overview.folded);
    out.scene = std::move(overview.scene);
  }
  return out;
}

QString why_not_pinned(const Document& document, const QString& node, Pin pin) {
  if (!document.cut) return QObject::tr("Values are pinned in a joint graph, and this is none: Ctrl+J makes one");
  if (node.isEmpty()) return QObject::tr("Choose a value first; a folded module unfolds with Enter");
  const std::string name = node.toStdString();
  const Node* found = document.graph->find(name);
  if (!found) return QObject::tr("%1 is not in the joint graph").arg(node);
  if (document.cut->backward.contains(name))
    return QObject::tr("%1 is computed in the backward; values of the forward can be pinned").arg(node);
  if (found->is_placeholder()) return QObject::tr("%1 is an input, which its caller keeps anyway").arg(node);
  if (!found->op()->is_call()) return QObject::tr("%1 is no value that is computed").arg(node);
  if (found->meta.tuple()) return QObject::tr("%1 is a tuple; pin one of its parts").arg(node);
  const auto pinned = document.pins.find(name);
  if ((pinned == document.pins.end() ? Pin::None : pinned->second) != pin) return {};
  return pin == Pin::None   ? QObject::tr("%1 has no pin").arg(node)
         : pin == Pin::Save ? QObject::tr("%1 is already pinned to be saved").arg(node)
                            : QObject::tr("%1 is already pinned to be recomputed").arg(node);
}

}  // namespace partita::views
