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
  bool writes_files = false;  ///< pictures or dumps, so that it wants a folder
};

struct ProgramRequest {
  QString compiler;
  bool train = false;  ///< with backward and gradients
  QString inputs;      ///< path of an IO file; empty: the archive's samples, else made up
  QString folder;      ///< for what the compiler writes; empty: not chosen
};

/// What a run gave.
struct ProgramResult {
  TensorFile results;
  Report against_file;  ///< the results against those the IO file holds; no rows: it holds none
  std::string printed;  ///< by the compiler
  double seconds = 0;
};

/// A row a result: its type, what values it holds, and whether the file's are the same. Reads every element.
std::vector<Row> result_rows(const ProgramResult& result);

/// A whole program run with a compiler by name: its results, and what the compiler printed. Runs nothing itself.
class RunView : public QWidget {
  Q_OBJECT

 public:
  explicit RunView(QWidget* parent = nullptr);
  void set_compilers(std::vector<CompilerChoice> compilers);
  void choose(const QString& compiler, bool train);
  InputsBox* inputs() { return inputs_; }
  void set_folder(const QString& path);
  ProgramRequest request() const;
  bool wants_folder() const;  ///< the chosen compiler writes files and nobody said where
  void set_result(std::vector<Row> rows, std::shared_ptr<const CodeDocument> printed, const QString& summary);
  void clear(const QString& note);
  void set_theme(const Theme& theme);
  TablePanel* results() { return results_; }
  CodeView* printed() { return printed_; }
  QString summary() const;

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
  ElidedLabel* description_;
  QLabel* summary_;
  TablePanel* results_;
  CodeView* printed_;
  InputsBox* inputs_;
  QString folder_;
};

}  // namespace partita::views
