#pragma once
// What the program gives the window: compilers, inputs, the store. Views compile nothing themselves.
#include <QString>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/aot/aot.h"
#include "core/base/progress.h"
#include "core/compare/per_node.h"
#include "core/compare/side_values.h"
#include "core/load/session.h"
#include "core/minify/reduce.h"
#include "core/minify/repro.h"
#include "core/minify/start.h"
#include "views/compare/compare_view.h"
#include "views/kernels/kernel_list.h"
#include "views/minify/minify_view.h"
#include "views/questions/questions_view.h"
#include "views/run/run_view.h"

namespace partita::views {

/// How a minification judges its tries. The oracle is called on a thread of this process; what may crash or hang it
/// hands to other processes.
struct MinifyTool {
  minify::Oracle oracle;
  int jobs = 1;             ///< tries at once
  bool functional = false;  ///< the compiler in question takes functional ATen only
  std::string options;      ///< of `partita minify` that do the same
  minify::ReproText words;  ///< for the repro folder; the culprit is filled in later
  /// Answers of earlier runs; empty: none are kept.
  std::function<minify::Memory(const minify::Start& start)> memory;
  /// Finds the guilty pass or kernel; empty: not offered.
  std::function<Result<minify::Culprit>(const minify::MinifyResult& reduced, const Progress& progress)> culprit;
  /// What the store keeps of the minification, as JSON; empty: nothing.
  std::function<std::string(const minify::MinifyResult& reduced, const minify::Culprit& culprit)> report;
};

/// What a run and a plan say about single nodes, by node name.
struct NodeMeasures {
  std::unordered_map<std::string, double> seconds;
  /// The kernel that each node becomes part of, or why the compiler has no plan for the graph.
  Result<std::unordered_map<std::string, std::string>> kernels;
};

/// What runs graphs, and where their inputs come from. A test gives its own, with a bug planted.
struct WorkbenchTools {
  struct BackendChoice {
    QString name;
    std::function<CompileFn(const Progress& progress)> make;
    bool takes_any_graph = true;  ///< other backends need functional ATen
    QString side = {};            ///< what `compare --against` takes for it; empty: its name

    /// Compiles and runs a graph at each call, as run_graph() does.
    Runner runner(const Progress& progress) const;
  };
  std::vector<BackendChoice> backends;
  QString doubted = "cpu";   ///< the backend that is compared and minified where no other is chosen
  QString plant = {};        ///< the fault that is planted, as `run --plant` takes it; empty: none
  QString baseline = "f64";  ///< runs in double, to tell rounding from error per node; may be missing
  /// One value for each placeholder of the artefact's graph; `io` is the path of an IO file, or empty.
  std::function<Result<std::vector<Value>>(Graph& graph, const Artefact& artefact, const QString& io)> inputs;
  /// Compares what the flow makes of an artefact, with columns that are more than a backend's name; empty: not offered.
  std::function<Result<std::vector<Report>>(const Artefact& artefact, const CompareRequest& request,
                                            const Progress& progress)>
      compare;
  /// The values behind one row of such a comparison, of the reference and then of each column; empty: not offered.
  std::function<Result<std::vector<SideValue>>(const Artefact& artefact, const CompareRequest& request,
                                               const ComparedRow& row, const Progress& progress)>
      values;
  /// AOTAutograd on a dynamo or exported graph; empty: not offered.
  std::function<Result<AotGraphs>(const Graph& graph, const ExportedProgram* program)> joint;
  /// Times the nodes of a graph and plans its kernels; empty: not offered.
  std::function<Result<NodeMeasures>(const Graph& graph, const std::vector<Value>& inputs, const Progress& progress)>
      measure;
  /// The kernels that the compiler makes of the artefact's graphs; empty: not offered.
  std::function<Result<std::vector<std::shared_ptr<const KernelList>>>(
      const Artefact& artefact, const KernelRequest& request, const Progress& progress)>
      kernels;
  /// How "accuracy" or "crash" of a backend is judged; empty: not offered.
  std::function<Result<MinifyTool>(const MinifyRequest& request)> minifier;
  /// The compilers of `run --compiler`.
  std::vector<CompilerChoice> compilers;
  /// Runs a whole program with one of them; empty: not offered.
  std::function<Result<ProgramResult>(const Artefact& artefact, const ProgramRequest& request,
                                      const Progress& progress)>
      run;
  /// The questions of `partita query`, and their answers; empty: not offered. `words`: the question and its arguments.
  std::vector<QuestionChoice> questions;
  std::function<Result<QuestionAnswer>(const QString& path, const Artefact& artefact, const QString& inputs,
                                       const QStringList& words, const Progress& progress)>
      ask;
  /// What `partita report` writes of the file at `path` and of its graph `id`, which may be empty; empty: not offered.
  std::function<Result<std::string>(const QString& path, const QString& id, const QString& inputs, bool pdf,
                                    const Progress& progress)>
      report;
  /// The SQLite file with checks and runs of the past; empty: there is no store.
  std::string store_file;
  /// Through Graphviz in a child process, as "svg", "png", "pdf" or "dot" (its source); empty: not offered.
  std::function<Result<std::string>(const Graph& graph, const std::string& format, const Progress& progress)> graphviz;

  const BackendChoice* find_backend(const QString& name) const;  ///< null when there is none
  QStringList backend_names() const;
};

}  // namespace partita::views
