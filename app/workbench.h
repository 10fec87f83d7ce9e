#pragma once
#include <QObject>
#include <QSettings>
#include <map>
#include <memory>
#include <optional>

#include "core/aot/aot.h"
#include "core/base/progress.h"
#include "core/minify/reduce.h"
#include "core/minify/repro.h"
#include "core/minify/start.h"
#include "views/aot/aot_view.h"
#include "views/compare/compare_view.h"
#include "views/coverage/coverage_view.h"
#include "views/history/history_view.h"
#include "views/minify/minify_view.h"
#include "views/passes/passes_view.h"
#include "views/run/run_view.h"
#include "views/session/artefact_tree.h"
#include "views/session/document.h"
#include "views/session/jobs.h"
#include "views/session/selection.h"
#include "views/tensor/tensor_view.h"
#include "views/window/main_window.h"

namespace partita {

/// A question that a minification asks. Its oracle judges on a thread of this process, so what may crash or hang is
/// judged by other processes.
struct MinifyTool {
  minify::Oracle oracle;
  bool functional = false;  ///< what is asked about wants functional ATen
  std::string options;      ///< of `partita minify` that ask the same
  minify::ReproText words;  ///< for the repro folder, but for the culprit
  /// Answers of earlier runs; empty: none are kept.
  std::function<minify::Memory(const minify::Start& start)> memory;
  /// Who is to blame for what is left; empty: nobody finds out.
  std::function<Result<minify::Culprit>(const minify::Reduced& reduced, const Progress& progress)> culprit;
};

/// What runs graphs, and where their inputs come from: given by the program, so that a test can plant a bug.
struct WorkbenchTools {
  struct Backend {
    QString name;
    std::function<CompileFn(const Progress& progress)> make;
  };
  std::vector<Backend> backends;
  QString doubted;           ///< the backend that is compared and minified where no other is chosen
  QString baseline = "f64";  ///< tells rounding from error where every node is compared; there need be none
  /// One value for each placeholder of the artefact's graph; `io` is the path of an IO file, or empty.
  std::function<Result<std::vector<Value>>(Graph& graph, const Artefact& artefact, const QString& io)> inputs;
  /// AOTAutograd on a dynamo or exported graph; empty: not offered.
  std::function<Result<AotGraphs>(const Graph& graph, const Program* program)> joint;
  /// What "accuracy" or "crash" with a backend's name asks; empty: not offered.
  std::function<Result<MinifyTool>(const views::MinifyRequest& request)> minifier;
  /// What `run --compiler` offers, and the run itself; empty: not offered.
  std::vector<views::CompilerChoice> compilers;
  std::function<Result<views::ProgramResult>(const Artefact& artefact, const views::ProgramRequest& request,
                                             const Progress& progress)>
      run;
  /// Where checks of the past are, and new ones are kept; empty: nowhere.
  std::string store_file;
  /// Through Graphviz in a child process, as "svg", "png", "pdf" or "dot" (its source); empty: not offered.
  std::function<Result<std::string>(const Graph& graph, const std::string& format, const Progress& progress)> graphviz;
};

/// Wires the window: what users ask for becomes a job on core's functions, its result goes to the views. Owns what is
/// open.
class Workbench : public QObject {
  Q_OBJECT

 public:
  explicit Workbench(WorkbenchTools tools);

  views::MainWindow& window() { return window_; }
  views::JobTracker& jobs() { return jobs_; }
  views::Selection& selection() { return selection_; }
  const views::Document* current() const { return current_; }
  const std::map<QString, std::unique_ptr<views::Document>>& documents() const { return documents_; }

  void open(const QString& path);
  /// Shows a document; renders it first when that has not been done.
  void show(const QString& key);
  /// As soon as a file that has a graph of this id is read.
  void show_when_loaded(const QString& id) { wanted_id_ = id; }
  /// A view by its name (graph, aot, passes, compare, values, history, coverage, minify, run); starts what it needs to
  /// have something to show. False when there is none of that name.
  bool show_view(const QString& name);
  void pin(const QString& node, views::Pin pin);
  void fold(const QString& frame_key);
  void run_passes();
  void make_joint();
  void compare(const views::CompareRequest& request);
  /// The values of a row of the last comparison, or of a node: both sides, their difference, where they differ.
  void look_at(const QString& row);
  /// The program of what is on the screen, as a whole, with a compiler by name.
  void run_program(const views::ProgramRequest& request);
  /// From the graph on the screen to a small one that fails alike; one at a time.
  void minify(const views::MinifyRequest& request);
  /// Writes what the last minification found.
  void save_repro(const QString& folder);
  /// Shows what the last minification found beside the graph it was made from.
  void open_smallest();
  /// Reads checks and runs of the past from the store.
  void read_history();
  /// Times the nodes of what is on the screen in the interpreter, and asks which kernels the compiler plans for them.
  void measure(const QString& inputs);
  /// Colours the picture by what this name says (family, bytes, error, time, kernel, module, pass); starts what finds
  /// it out. False when there is none of that name.
  bool show_overlay(const QString& name);
  void set_budget(double budget);
  /// Writes the graph on the screen as Graphviz draws it; the path's ending says how.
  void export_graphviz(const QString& path);
  void show_aot();
  views::PassesView* passes() { return passes_; }
  views::CompareView* comparison() { return compare_; }
  views::AotView* aot() { return aot_; }
  views::TensorView* tensor() { return tensor_; }
  views::HistoryView* history() { return history_; }
  views::MinifyView* minifier() { return minify_; }
  views::RunView* runs() { return run_; }
  /// The command that does what is on the screen, for a shell.
  QString command_line() const;

 Q_SIGNALS:
  void loaded(QString path);                        ///< read, with what could not be read reported
  void failed(const partita::Diagnostic& problem);  ///< nothing of a file could be read, or a graph not be drawn
  void shown(QString key);

 private:
  using Document = views::Document;
  void wire_window();
  void wire_search();
  void wire_analyses();
  void wire_comparison();
  void wire_run();
  struct Minification;
  void wire_minifier();
  void show_minifier();
  void take_tries();
  void show_tries();
  void draw_smallest();
  void ask_repro_folder();
  void show_report(const QString& key, const views::CompareRequest& request, const Report& report, double seconds);
  void ask_slice(const views::Slice& slice);
  void ask_reports(const std::vector<std::int64_t>& checks);
  void show_step(int step);
  void add_loaded(const QString& path, Loaded loaded);
  Document& add_document(std::unique_ptr<Document> document, const QString& group, const QString& detail,
                         const QString& parent_key, const QString& heading = {});
  void render(Document& document);
  void set_rendering(const QString& key, views::Rendering rendering);
  void put_on_screen(Document& document);
  void select_in_views(const views::Spot& spot);
  void report(const Diagnostic& problem);
  void remember(const QString& path);
  void refresh_recent();
  void set_inputs(const QString& path);
  void tell_cut(const Document& document);
  void export_picture(const QString& format);
  void ask_graphviz_path();
  void wire_measures();
  void ask_budget_curve(Document& document);
  void tell_overlays();
  std::vector<views::PaletteEntry> palette_entries(const QString& typed);

  views::JobTracker jobs_;
  views::Selection selection_;
  views::ArtefactTree tree_;
  views::MainWindow window_;
  WorkbenchTools tools_;
  views::PassesView* passes_;
  views::CompareView* compare_;
  views::AotView* aot_;
  views::CoverageView* coverage_;
  views::TensorView* tensor_;
  views::HistoryView* history_;
  views::MinifyView* minify_;
  views::RunView* run_;
  std::shared_ptr<Minification> minification_;     ///< the last; null: there was none
  std::optional<views::CompareRequest> compared_;  ///< how the report on the screen was made
  QString compared_key_;                           ///< of which document
  bool values_wanted_ = false;                     ///< of the worst row, as soon as there is a report
  QString film_of_;                                ///< key of the document whose passes are shown
  views::TextWidth text_width_;
  std::map<QString, std::unique_ptr<Document>> documents_;
  Document* current_ = nullptr;
  QString wanted_id_;
  std::optional<views::OverlayKind> wanted_overlay_;  ///< to show as soon as there is something to show
};

}  // namespace partita
