#pragma once
#include <QWidget>

#include "views/graph/graph_view.h"
#include "views/minify/minify_log.h"
#include "views/minify/shrink_plot.h"
#include "views/table/table_panel.h"

class QComboBox;
class QLabel;
class QPushButton;

namespace partita::views {

struct MinifyRequest {
  QString check;     ///< "accuracy" or "crash"
  QString compiler;  ///< that compiles the graph and its parts
};

/// A minification as it goes: the graph that becomes smaller, what was tried, how fast; pause, end with what there is,
/// cancel; then the repro folder. Runs nothing itself.
class MinifyView : public QWidget {
  Q_OBJECT

 public:
  explicit MinifyView(QWidget* parent = nullptr);
  void set_choices(const QStringList& checks, const QStringList& compilers);
  MinifyRequest request() const;
  void choose(const MinifyRequest& request);
  /// A job began; without one nothing can be paused or accepted.
  void start();
  void add(const std::vector<MinifyStep>& steps);
  void set_scene(std::shared_ptr<const Scene> scene);
  void finish(const MinifyOutcome& outcome);
  void fail(const QString& why);
  void set_theme(const Theme& theme);

  bool running() const { return running_; }
  const MinifyLog& log() const { return log_; }
  GraphView* graph() { return graph_; }
  TablePanel* tried() { return tried_; }
  QString headline() const;

 Q_SIGNALS:
  void run_asked(const partita::views::MinifyRequest& request);
  void pause_asked(bool pause);
  void accept_asked();
  void cancel_asked();
  void folder_asked(QString folder);

 private:
  void set_running(bool running);
  void set_paused(bool paused);

  QComboBox *check_, *compiler_;
  QPushButton *run_, *pause_, *accept_, *cancel_, *folder_;
  QLabel *headline_, *line_;
  GraphView* graph_;
  ShrinkPlot* plot_;
  TablePanel* tried_;
  MinifyLog log_;
  QString repro_;
  bool running_ = false, paused_ = false;
};

}  // namespace partita::views
