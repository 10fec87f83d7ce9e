#pragma once
#include <map>

#include "views/frame/controller.h"
#include "views/graph/picture_bar.h"
#include "views/picture/graph_view.h"

class QAction;

namespace partita::views {

/// The picture of the current document: what it is coloured by, times and kernels of its nodes, export.
class GraphController : public WidgetController<GraphView> {
 public:
  explicit GraphController(Workbench& bench);
  PictureBar* bar() { return bar_; }

  void wait_for(const Document& document) override;
  void set_document(const Document& document) override;
  void facts_changed(const Document& document) override;
  std::optional<int> search(const QString& needle) override;
  std::vector<OverlaySource> overlays() override;

  /// Colours the picture by what this name says (family, bytes, error, time, kernel, module, pass); starts what finds
  /// it out. False when there is none of that name.
  bool show_overlay(const QString& name);
  QAction* overlay_action(OverlayKind kind) { return overlays_.at(kind); }
  /// Offers what there is something to colour by.
  void refresh_overlays();
  /// Times the nodes of the current graph in the interpreter on these inputs, and asks which kernels the compiler
  /// plans.
  void measure(const QString& io);
  /// Writes the current graph as Graphviz draws it; the path's ending says how.
  void export_graphviz(const QString& path);
  /// The report of the current document's file, as a page, or for a path that ends in .pdf as that.
  void write_report(const QString& path);
  void write_picture(const QString& path);  ///< as SVG, PNG or PDF, by its ending
  /// Shows a graph that a pass made of the current one, until the document is shown again.
  void show_step(std::shared_ptr<const Scene> scene, std::unordered_map<std::string, Change> changes, Facts facts,
                 std::vector<Ghost> removed);
  void show() override;
  /// Gives symbols of the current graph an example size, by which bytes are counted and values are chosen to be saved.
  void set_hints(const std::map<std::string, std::int64_t>& hints);

 private:
  void add_commands();
  void set_overlay(OverlayKind kind);
  void arrange_bar();
  void ask_path(const QString& title, const QString& suffix, const QStringList& filters,
                std::function<void(const QString&)> chosen);
  /// Writes what `make` returns to a file, as a job named after it.
  void write(const QString& job, const QString& path, std::function<Result<std::string>(const Progress&)> make);
  void export_picture(const QString& format);
  void ask_graphviz_path();
  void ask_hints();

  PictureBar* bar_;
  std::map<OverlayKind, QAction*> overlays_;
  bool step_shown_ = false;
  std::optional<OverlayKind> wanted_overlay_;  ///< to show as soon as there is something to show
};

}  // namespace partita::views
