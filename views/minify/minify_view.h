#pragma once

#include <QLabel>
#include <QWidget>

#include "app/tasks/minify_question.h"
#include "views/listing/code_view.h"
#include "views/look/inputs_box.h"
#include "views/minify/minify_log.h"
#include "views/minify/shrink_plot.h"
#include "views/picture/graph_view.h"
#include "views/table/table_panel.h"

class QComboBox;
class QPushButton;

namespace partita::views {

/// Shows a minification while it runs: the graph that becomes smaller, as picture and as text, and what was tried. It
/// can be paused, ended with the smallest graph so far, and cancelled; its result can be saved and opened.
class MinifyView : public QWidget {
  Q_OBJECT

 public:
  explicit MinifyView(QWidget* parent = nullptr);
  /// `compiler`: the one that is chosen at first.
  void set_choices(const QStringList& checks, const QStringList& compilers, const QString& compiler);
  MinifyRequest request() const;
  void choose(const MinifyRequest& request);
  void clear();  ///< nothing was minified yet
  /// To be called when a job begins: offers pause, accept and cancel.
  void start();
  void add(const std::vector<minify::Event>& steps);
  /// Shows the smallest graph that fails.
  void set_graph(std::shared_ptr<const Scene> scene, std::shared_ptr<const CodeDocument> code);
  void finish(const minify::MinifyResult& reduced, const minify::Culprit& culprit);
  /// The job ended without a result.
  void fail(const QString& why);
  /// The repro was written to this folder.
  void set_saved(const QString& folder);

  bool running() const { return running_; }
  const MinifyLog& log() const { return log_; }
  GraphView* graph() { return graph_; }
  CodeView* code() { return code_; }
  InputsBox* inputs() { return inputs_; }
  TablePanel* tried() { return tried_; }
  QString headline() const { return headline_->text(); }
  QString details() const { return line_->text(); }

 Q_SIGNALS:
  void run_asked(const partita::MinifyRequest& request);
  void pause_asked(bool pause);
  void accept_asked();
  void cancel_asked();
  void save_asked();  ///< the repro
  void open_asked();  ///< the small graph, beside the others
  void folder_asked(QString folder);

 private:
  void set_running(bool running);
  void set_paused(bool paused);

  QLabel* with_;
  QComboBox *check_, *compiler_;
  InputsBox* inputs_;
  QPushButton *run_, *pause_, *accept_, *cancel_, *save_, *open_, *folder_;
  QLabel *headline_, *line_;
  GraphView* graph_;
  CodeView* code_;
  ShrinkPlot* plot_;
  TablePanel* tried_;
  MinifyLog log_;
  QString repro_;
  bool running_ = false, paused_ = false;
};

}  // namespace partita::views
