#pragma once
// A window whose backends are the interpreter, right and with a fault planted in gelu.
#include <QElapsedTimer>
#include <QLabel>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>
#include <ctime>
#include <fstream>

#include "app/tasks/node_measures.h"
#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "core/ir/print.h"
#include "core/ops/record/record.h"
#include "views/code/code_controller.h"
#include "views/graph/graph_controller.h"
#include "views/window/window_session.h"

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

#ifdef PARTITA_SANITIZED
constexpr int slower = 2;  ///< than the program that users have; the release build's tests have its limits
#else
constexpr int slower = 1;
#endif

/// Watches the turns of the event loop. A turn's own work counts in processor time of this thread, since a busy
/// machine is not a blocked window; waiting counts only where it is long.
class Watchdog : public QObject {
 public:
  Watchdog() {
    wall_.start();
    startTimer(1);
  }
  /// What blocked the window; empty: nothing did.
  QString blocked() const {
    if (longest_work_ms >= 100 * slower)
      return QString("a turn of the event loop worked for %1 ms").arg(longest_work_ms);
    if (longest_wall_ms >= 2000) return QString("a turn of the event loop took %1 ms").arg(longest_wall_ms);
    return {};
  }
  qint64 longest_work_ms = 0, longest_wall_ms = 0;

 protected:
  void timerEvent(QTimerEvent*) override {
    const qint64 worked = worked_ms();
    longest_work_ms = std::max(longest_work_ms, worked - std::exchange(worked_ms_, worked));
    longest_wall_ms = std::max(longest_wall_ms, wall_.restart());
  }

 private:
  static qint64 worked_ms() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1'000'000;
  }

  QElapsedTimer wall_;
  qint64 worked_ms_ = worked_ms();
};

/// What the window says of errors, in the places it has for them.
inline QString shown_errors(Session& bench) {
  QStringList all;
  for (const QLabel* label : bench.window().findChildren<QLabel*>())
    if (label->objectName() == "error" && !label->text().isEmpty()) all << label->text();
  return all.join('\n');
}

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
  t.suspect = "broken";
  t.backends.push_back({"broken", [](const Progress&) { return interpreter(0.25); }});
  t.inputs = [](Graph& graph, const Artefact&, const QString&) { return random_inputs(graph, 0); };
  t.measure = measure_nodes;
  return t;
}

inline GraphView* picture(Session& bench) {
  return bench.views().get<GraphController>().view();
}
// The code beside the picture, and the page of plain texts.
inline CodeView* code(Session& bench) {
  return bench.views().get<CodeController>().view();
}
inline CodeView* texts(Session& bench) {
  return bench.views().get<TextController>().view();
}

inline bool wait_shown(Session& bench, int ms = 30000) {
  return QTest::qWaitFor(
      [&] { return bench.jobs().idle() && bench.documents().current() && bench.documents().current()->code; }, ms);
}

/// Opens a graph with nothing folded, however small the window is.
inline bool open_unfolded(Session& bench, const QString& path) {
  bench.documents().open(path);
  if (!wait_shown(bench)) return false;
  bench.drawing().fold_all(false);
  return QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000);
}

}  // namespace partita::tests
