#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QWidget>
#include <vector>

#include "app/tasks/locate.h"
#include "views/look/elided_label.h"
#include "views/look/inputs_box.h"
#include "views/table/table_panel.h"

class QCheckBox;
class QComboBox;

namespace partita::views {

/// A row for each buffer that inductor's code leaves wrong. Choosing one selects the first of its nodes in the graph.
std::vector<Row> wrong_buffer_rows(const Located& found);

/// What PyTorch's inductor does wrong with a graph: which kernel and node, how sure that is, and what shows it. Asks
/// for the search, and for what can be done about its result, by signals.
class InductorView : public QWidget {
  Q_OBJECT

 public:
  explicit InductorView(QWidget* parent = nullptr);

  LocateRequest request() const;
  void choose(const QString& against) { against_->setText(against); }  ///< torch:inductor[+KEY=VALUE...]
  InputsBox* inputs() { return inputs_; }
  void say(const QString& note) { note_->setText(note); }  ///< what it is at, or why there is no result
  void set_running(bool running);                          ///< offers to cancel
  bool running() const { return running_; }
  /// One graph's result or several, of which the first that is wrong is shown.
  void set_found(std::vector<Located> found);
  void clear();
  const Located* found() const;  ///< of the graph that is chosen; null: none
  /// the user wants the kernel's code in place of the graph's
  bool shows_code() const { return code_->isChecked(); }
  TablePanel* evidence() { return evidence_; }
  QString headline() const { return headline_->text(); }
  QString facts() const { return facts_->text(); }

 Q_SIGNALS:
  void find_asked();
  void cancel_asked();
  void graph_chosen();
  void code_wanted();  ///< or no longer
  void minify_asked();
  void repro_asked();
  void command_asked();

 private:
  void show_graph(int index);
  QWidget* make_verdict();

  std::vector<Located> found_;
  QLineEdit* against_;
  InputsBox* inputs_;
  QCheckBox *train_, *switches_;
  QComboBox* graph_;
  ElidedLabel* note_;
  QLabel *headline_, *certainty_, *facts_;
  QPushButton *find_, *cancel_, *minify_, *repro_, *command_, *code_;
  TablePanel* evidence_;
  bool running_ = false;
};

}  // namespace partita::views
