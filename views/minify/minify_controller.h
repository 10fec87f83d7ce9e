#pragma once
#include "views/frame/controller.h"
#include "views/minify/minify_view.h"

namespace partita::views {

/// Minifies the current graph: from a graph that fails to a small one that fails in the same way. One at a time.
class MinifyController : public WidgetController<MinifyView> {
 public:
  explicit MinifyController(Workbench& bench);

  void show() override { minify(view_->request()); }
  QStringList command() const override;
  void set_document(const Document& document) override;

  void minify(const MinifyRequest& request);
  /// Writes what the last minification found.
  void save_repro(const QString& folder);
  /// Shows what the last minification found beside the graph it was made from.
  void open_smallest();

 private:
  struct Minification;
  void show_page();
  void take_tries();
  void show_tries();
  void draw_smallest();
  /// Draws a graph with these modules folded; none given: as few as it takes to be readable.
  void draw(std::shared_ptr<const Graph> graph, std::optional<std::unordered_set<std::string>> folded = {});
  void fold(const QString& frame_key);
  void ask_repro_folder();

  std::shared_ptr<Minification> last_;  ///< null: there was none
  std::shared_ptr<const Graph> drawn_;  ///< what is shown or being drawn
  std::unordered_set<std::string> folded_;
  int draw_job_ = 0;  ///< id in the job tracker
};

}  // namespace partita::views
