#pragma once
// What the program gives the window: compilers, inputs, the store. Views compile nothing themselves.
#include <QString>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/tasks/columns.h"
#include "app/tasks/compilers.h"
#include "app/tasks/kernels.h"
#include "app/tasks/locate.h"
#include "app/tasks/minify_question.h"
#include "app/tasks/node_measures.h"
#include "app/tasks/queries.h"
#include "core/aot/aot.h"
#include "core/base/progress.h"
#include "core/compare/per_node.h"
#include "core/load/session.h"
#include "views/frame/window.h"

namespace partita::views {

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
  QString suspect = "cpu";   ///< the backend that is compared and minified where no other is chosen
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
                                               const std::string& graph, const std::string& row,
                                               const Progress& progress)>
      values;
  /// AOTAutograd on a dynamo or exported graph; empty: not offered.
  std::function<Result<AotGraphs>(const Graph& graph, const Artefact& artefact)> joint;
  /// Times the nodes of a graph and plans its kernels; empty: not offered.
  std::function<Result<NodeMeasures>(const Graph& graph, const std::vector<Value>& inputs, const Progress& progress)>
      measure;
  /// The kernels that the compiler makes of the artefact's graphs; empty: not offered.
  std::function<Result<std::vector<PlannedGraph>>(const Artefact& artefact, const KernelRequest& request,
                                                  const Progress& progress)>
      kernels;
  /// Which kernel and node of PyTorch's inductor is wrong; empty: not offered.
  std::function<Result<std::vector<Located>>(const Artefact& artefact, const LocateRequest& request,
                                             const Progress& progress)>
      locate;
  /// The Python that runs PyTorch: what it has, or that this is not known yet, and its path; empty: not offered.
  std::function<Environment()> python;
  /// Bytes that a training step of the graph holds when it is cut like this; empty: not offered.
  std::function<Result<double>(const Artefact& artefact, const Graph& graph, const PartitionOptions& cut,
                               const Progress& progress)>
      step_bytes;
  std::shared_ptr<const std::vector<KernelForm>> kernel_forms;  ///< of its code; null with no kernels
  /// How "accuracy" or "crash" of a backend is judged; empty: not offered.
  std::function<Result<MinifyTool>(const Artefact& artefact, const MinifyRequest& request)> minifier;
  /// The compilers of `run --compiler`.
  std::span<const Compiler> compilers;
  /// Runs a whole program with one of them; empty: not offered.
  std::function<Result<CompilerRun>(const Artefact& artefact, const CompilerRequest& request, const Progress& progress)>
      run;
  /// The questions of `partita query`, and their answers, as ask() gives them; empty: not offered.
  std::span<const Query> questions;
  std::function<Result<QueryAnswer>(const std::string& path, const Artefact& artefact, const std::string& inputs,
                                    const std::vector<std::string>& words, const Progress& progress)>
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
