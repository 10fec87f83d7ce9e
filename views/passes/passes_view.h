#pragma once
#include <QWidget>
#include <memory>
#include <optional>

#include "core/passes/run_passes.h"
#include "views/listing/code_view.h"
#include "views/passes/graph_diff.h"
#include "views/picture/scene.h"
#include "views/table/table_panel.h"

class QLabel;
class QMenu;
class QPushButton;
class QSlider;

namespace partita::views {

/// One step of the history: the graph after a pass, and what the pass did.
struct PassStep {
  QString name, stage;
  double seconds = 0;
  std::size_t nodes_before = 0, nodes_after = 0;
  bool changed = false, disabled = false;
  bool rewrite = false;               ///< one rewrite of the pass before it
  QString wrong;                      ///< what a check of the numbers found here
  std::optional<double> off_by;       ///< how far the pass moved a result; unset: the numbers were not checked
  std::vector<RewriteStep> rewrites;  ///< of the pass
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Scene> scene;           ///< unchanged cards stay where they were in the step before
  std::vector<Ghost> removed;                   ///< cards of the step before that are gone
  std::shared_ptr<const GraphDiff> diff;        ///< null when nothing changed
  std::shared_ptr<const CodeDocument> code;     ///< of the graph
  std::shared_ptr<const CodeDocument> listing;  ///< of the diff
  std::vector<Change> line_changes;
};
/// Step 0 is the graph before any pass.
struct PassHistory {
  std::vector<PassStep> steps;
};
/// Computes diffs, so that it belongs on a worker thread. `folded`: keys of frames.
PassHistory make_history(const PipelineRun& run, const TextWidth& text_width,
                         const std::unordered_set<std::string>& folded = {});

/// Puts a step for each rewrite of a pass after the pass's own step. They are not drawn yet.
void add_rewrites(PassHistory& history, int step);
/// Takes them away; false when there are none.
bool drop_rewrites(PassHistory& history, int step);
/// Draws the step of a rewrite, and the one before it that it is shown beside: cards keep their places from one to the
/// next. Belongs on a worker thread, too.
Status draw_rewrite(PassHistory& history, int step, const Pass& pass, const TextWidth& text_width,
                    const std::unordered_set<std::string>& folded, const Progress& progress);
/// The step of the pass that a step belongs to.
int pass_step(const PassHistory& history, int step);

/// The pass of each node, by name: at step 0 the first that will change or remove the node, at a later step the last
/// that made or changed it.
std::unordered_map<std::string, std::string> pass_of_nodes(const PassHistory& history, int step);

/// The list of steps. A column more says how far each pass moved the results, when that was checked.
struct PassTable {
  QStringList columns;
  std::vector<Row> rows;
};
PassTable pass_table(const PassHistory& history);

/// Steps through passes with a list of timings, a slider and a text diff. `step_chosen` has the window draw the step.
class PassesView : public QWidget {
  Q_OBJECT

 public:
  explicit PassesView(QWidget* parent = nullptr);
  /// `step`: the one to go to; -1: the first that changed something.
  void set_history(std::shared_ptr<const PassHistory> history, int step = -1);
  const PassHistory* history() const { return history_.get(); }
  int step() const { return step_; }
  void go_to(int step);
  void go_by(int by, bool only_changed);
  void select(const QString& node) { text_->select(node); }

 Q_SIGNALS:
  void run_asked();
  void check_asked();
  void rewrites_asked(int step);              ///< of the pass of this step; they go when they are shown
  void skip_asked(QString pass);              ///< or no longer skip it
  void move_asked(QString pass, int places);  ///< later: positive
  void reset_asked();                         ///< all passes, in their own order
  void step_chosen(int step);
  void node_chosen(QString node);

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  const PassStep* chosen_pass() const;  ///< null before the first
  void offer_changes();

  std::shared_ptr<const PassHistory> history_;
  int step_ = -1;
  TablePanel* list_;
  QSlider* slider_;
  QMenu* changes_;  ///< what may be done with the chosen pass
  QLabel* title_;
  CodeView* text_;
};

}  // namespace partita::views
