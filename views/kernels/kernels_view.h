#pragma once

#include <QCheckBox>
#include <QWidget>

#include "views/kernels/kernel_list.h"
#include "views/kernels/linked_pane.h"
#include "views/look/elided_label.h"
#include "views/look/inputs_box.h"
#include "views/table/table_panel.h"

class QComboBox;
class QHBoxLayout;
class QLabel;
class QSplitter;

namespace partita::views {

class MemoryPlot;

/// The steps of a plan, the code of the chosen one in panes whose lines are linked by colour, and memory over time.
class KernelsView : public QWidget {
  Q_OBJECT

 public:
  explicit KernelsView(QWidget* parent = nullptr);

  /// Shows what was made, the first graph first; `note` beside the buttons.
  void set_lists(std::vector<std::shared_ptr<const KernelList>> lists, const QString& note);
  void say(const QString& note) { note_->setText(note); }  ///< beside the lists
  void clear() { set_lists({}, {}); }
  /// Goes to the step of a node of the graph on the screen, which `source` is from; without a signal.
  void select(const QString& node, const StackFrame* source);
  /// The code of the chosen step in one of the forms; an error or "it has none" as a note.
  void set_code(int form, const Result<std::optional<loops::LinkedText>>& code);

  InputsBox* inputs() { return inputs_; }
  KernelRequest request() const { return {{}, {}, train_->isChecked(), false, inputs_->path().toStdString()}; }
  std::shared_ptr<const KernelList> list() const;  ///< null: none
  int step() const { return step_; }               ///< -1: none is chosen
  TablePanel* table() { return table_; }
  const std::vector<LinkedPane*>& panes() const { return panes_; }

 Q_SIGNALS:
  void asked(bool measure);
  void inductor_asked();
  void code_asked(int step);       ///< of all forms
  void node_chosen(QString node);  ///< of KernelList::graph

 private:
  void show_list(int index);
  void make_panes(const QStringList& forms);
  void go_to(int step);
  void show_step(int step, const QString& node);
  void mark(int node, bool tell);

  std::vector<std::shared_ptr<const KernelList>> lists_;
  QComboBox* graph_;
  QCheckBox* train_;
  InputsBox* inputs_;
  ElidedLabel* note_;
  QLabel* details_;
  TablePanel* table_;
  MemoryPlot* memory_;
  QSplitter* code_;
  QHBoxLayout* forms_;
  std::vector<LinkedPane*> panes_;
  int step_ = -1;
  bool quiet_ = false;
};

}  // namespace partita::views
