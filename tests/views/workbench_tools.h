#pragma once
// A window whose backends are the interpreter, right and with a fault planted in gelu.
#include <QElapsedTimer>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>

#include "app/node_measures.h"
#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "core/ir/print.h"
#include "core/ops/record.h"
#include "views/code/code_controller.h"
#include "views/graph/graph_controller.h"
#include "views/window/workbench.h"

namespace partita::tests {

using namespace partita::views;

/// A folder for the graphs, settings and stores of one test program.
struct TestFolder : QTemporaryDir {
  QString write(const QString& name, const Graph& graph) const {
    QString path = filePath(name);
    std::ofstream(path.toStdString()) << print(graph);
    return path;
  }
  void keep_settings_here() const {
    QSettings::setDefaultFormat(QSettings::IniFormat);
    QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, path());
    QCoreApplication::setOrganizationName("partita-test");
  }
};

/// Measures the longest time between two turns of the event loop.
class Watchdog : public QObject {
 public:
  Watchdog() {
    clock_.start();
    startTimer(1);
  }
  qint64 longest_ms = 0;

 protected:
  void timerEvent(QTimerEvent*) override {
    const qint64 waited = waited_for_processor_ms();
    longest_ms = std::max(longest_ms, clock_.restart() - (waited - std::exchange(waited_ms_, waited)));
  }

 private:
  /// This thread's time in the run queue, which is subtracted: a busy machine is not a blocked window.
  static qint64 waited_for_processor_ms() {
    qint64 ran_ns = 0, waited_ns = 0;
    std::ifstream("/proc/thread-self/schedstat") >> ran_ns >> waited_ns;
    return waited_ns / 1'000'000;
  }

  QElapsedTimer clock_;
  qint64 waited_ms_ = waited_for_processor_ms();
};

inline CompileFn interpreter(double planted) {
  return [planted](const Graph& graph) -> Result<CompiledFn> {
    return CompiledFn([&graph, planted](std::vector<Value> inputs) -> Result<std::vector<Value>> {
      InterpOptions options;
      if (planted != 0)
        options.evaluate = [planted](const Node& node, std::vector<Value> args, ValueKwargs kwargs,
                                     const EvalContext& context) -> Result<Value> {
          TRY(Value value, partita::evaluate(node.op(), std::move(args), std::move(kwargs), context, &node));
          if (node.op()->name == "aten.gelu.default")
            value.get<Tensor>()->as<float>()[5] += static_cast<float>(planted);
          return value;
        };
      return interpret(graph, std::move(inputs), options);
    });
  };
}

inline WorkbenchTools tools() {
  WorkbenchTools t;
  t.backends.push_back({"interp", [](const Progress&) { return interpreter(0); }});
  t.doubted = "broken";
  t.backends.push_back({"broken", [](const Progress&) { return interpreter(0.25); }});
  t.inputs = [](Graph& graph, const Artefact&, const QString&) { return random_inputs(graph, 0); };
  t.measure = measure_nodes;
  return t;
}

inline GraphView* picture(Workbench& bench) {
  return bench.get<GraphController>().view();
}
// The code beside the picture, and the page of plain texts.
inline CodeView* code(Workbench& bench) {
  return bench.get<CodeController>().view();
}
inline CodeView* texts(Workbench& bench) {
  return bench.get<TextController>().view();
}

inline bool wait_shown(Workbench& bench, int ms = 30000) {
  return QTest::qWaitFor([&] { return bench.jobs().idle() && bench.current() && bench.current()->code; }, ms);
}

/// Opens a graph with nothing folded, however small the window is.
inline bool open_unfolded(Workbench& bench, const QString& path) {
  bench.open(path);
  if (!wait_shown(bench)) return false;
  bench.fold_all(false);
  return QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000);
}

}  // namespace partita::tests
