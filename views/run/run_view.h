#pragma once
#include <QWidget>

#include "core/compare/compare.h"
#include "core/load/safetensors.h"
#include "views/code/code_view.h"
#include "views/look/inputs_box.h"
#include "views/table/table_panel.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QPushButton;

namespace partita::views {

class ElidedLabel;

/// A row of the compiler box.
struct CompilerChoice {
  QString name, description;
  bool writes_files = false;  ///< it writes pictures or dumps, so that it needs a folder
};

struct ProgramRequest {
  QString compiler;
  bool train = false;  ///< with backward and gradients
  QString inputs;      ///< path of an IO file; empty: the archive's samples, else made up
  QString folder;      ///< for what the compiler writes; empty: not chosen
};

/// The result of a run.
struct ProgramResult {
  TensorFile results;
  Report against_file;  ///< the results compared with those in the IO file; no rows: it has none
  std::string printed;  ///< what the compiler printed
  double seconds = 0;
  std::vector<std::pair<std::string, double>> stages;  ///< milliseconds of each stage of compiling; empty: not known
};

/// One row per result: its type, a summary of its values, and whether the file's are the same. Reads every element.
std::vector<Row> result_rows(const ProgramResult& result);

/// Chooses a compiler and shows the results of the whole program, and what the compiler printed. Asks for runs by a
/// signal.
class RunView : public QWidget {
  Q_OBJECT

 public:
  explicit RunView(QWidget* parent = nullptr);
  void set_compilers(std::vector<CompilerChoice> compilers);
  void choose(const QString& compiler, bool train);
  InputsBox* inputs() { return inputs_; }
  void set_folder(const QString& path);
  ProgramRequest request() const;
  bool wants_folder() const;  ///< the chosen compiler writes files and no folder is chosen
  /// `details`: lines for the summary's tooltip.
  void set_result(std::vector<Row> rows, std::shared_ptr<const CodeDocument> printed, const QString& summary,
                  const QString& details = {});
  void say(const QString& summary);  ///< in its place
  void clear();
  TablePanel* results() { return results_; }
  CodeView* printed() { return printed_; }
  QString summary() const;
  QString details() const;

 Q_SIGNALS:
  void run_asked(const partita::views::ProgramRequest& request);

 private:
  const CompilerChoice* chosen() const;
  void tell_choice();
  void ask_folder(bool then_run);

  std::vector<CompilerChoice> compilers_;
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
