#pragma once

#include <QWidget>
#include <span>

#include "app/tasks/compilers.h"
#include "views/listing/code_view.h"
#include "views/look/elided_label.h"
#include "views/look/inputs_box.h"
#include "views/table/table_panel.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QPushButton;

namespace partita::views {

/// One row per result: its type, a summary of its values, and whether the file's are the same. Reads every element.
std::vector<Row> result_rows(const CompilerRun& run);

/// Chooses a compiler and shows the results of the whole program, and what the compiler printed. Asks for runs by a
/// signal.
class RunView : public QWidget {
  Q_OBJECT

 public:
  explicit RunView(QWidget* parent = nullptr);
  void set_compilers(std::span<const Compiler> compilers);
  void choose(const QString& compiler, bool train);
  InputsBox* inputs() { return inputs_; }
  void set_folder(const QString& path);
  CompilerRequest request() const;
  /// the chosen compiler writes files and no folder is chosen
  bool wants_folder() const { return chosen() && chosen()->writes_files && folder_.isEmpty(); }
  /// `details`: lines for the summary's tooltip.
  void set_result(std::vector<Row> rows, std::shared_ptr<const CodeDocument> printed, const QString& summary,
                  const QString& details = {});
  void say(const QString& summary);  ///< in its place
  void clear() { set_result({}, nullptr, {}); }
  TablePanel* results() { return results_; }
  CodeView* printed() { return printed_; }
  QString summary() const { return summary_->text(); }
  QString details() const { return summary_->toolTip(); }

 Q_SIGNALS:
  void run_asked(const partita::CompilerRequest& request);

 private:
  const Compiler* chosen() const;
  void tell_choice();
  void ask_folder(bool then_run);

  std::span<const Compiler> compilers_;
  QComboBox* compiler_;
  QCheckBox* train_;
  QPushButton* choose_folder_;
  ElidedLabel *description_, *summary_;  ///< the second takes the first one's place after a run
  TablePanel* results_;
  CodeView* printed_;
  InputsBox* inputs_;
  QString folder_;
};

}  // namespace partita::views
