// One state, one owner: what is cancelled leaves what was there before, what is closed or covered by another graph
// goes.
#include <QAction>
#include <QComboBox>
#include <QDir>
#include <QLabel>
#include <QTest>

#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/aot/aot_controller.h"
#include "views/compare/compare_controller.h"
#include "views/inspector/inspector.h"
#include "views/look/format.h"
#include "views/tensor/values_controller.h"

using namespace partita;
using namespace partita::views;
using namespace partita::tests;

namespace {

/// Works until it is cancelled.
Diagnostic wait_for_cancel(const Progress& progress) {
  while (!progress.cancelled()) QThread::msleep(1);
  return stopped_on_request();
}

bool idle(Workbench& bench) {
  return QTest::qWaitFor([&] { return bench.jobs().idle(); }, 60000);
}

bool cancelled(Workbench& bench) {
  bench.jobs().cancel_all();
  return idle(bench);
}

bool says(QWidget* view, const QString& words) {
  return std::ranges::any_of(view->findChildren<QLabel*>(),
                             [&](const QLabel* label) { return label->text() == words; });
}

QAction* command(Workbench& bench, const QString& name) {
  for (QAction* action : bench.window().findChildren<QAction*>())
    if (action->text() == name) return action;
  return nullptr;
}

int saved_in(AotController& aot) {
  return aot.view()->findChild<TablePanel*>()->model()->rowCount();
}

}  // namespace

class TestState : public QObject {
  Q_OBJECT

  TestFolder folder_;

  /// A folder with two joint graphs.
  QString two_graphs(const QString& name) const {
    QDir(folder_.path()).mkpath(name);
    folder_.write(name + "/a.py", *tests::joint_graph(3));
    folder_.write(name + "/b.py", *tests::joint_graph(4));
    return folder_.filePath(name);
  }
  /// Opens it; the key of the graph that is not shown.
  static QString open_two(Workbench& bench, const QString& path) {
    bench.window().show();
    bench.open(path);
    if (!wait_shown(bench)) return {};
    for (const auto& [key, document] : bench.documents())
      if (document.get() != bench.current()) return key;
    return {};
  }

 private Q_SLOTS:
  void initTestCase() { folder_.keep_settings_here(); }

  void counts_stand_beside_the_bytes_of_the_same_values() {
    Workbench bench(tools());
    bench.window().show();
    bench.open(folder_.write("counts.py", *tests::joint_graph(4)));
    QVERIFY(wait_shown(bench));
    const CutSummary& cut = *bench.current()->cut;
    const auto inputs = std::ranges::count_if(cut.saved, &SavedValue::is_input);
    const auto values = std::ssize(cut.saved) - inputs;
    QVERIFY(inputs > 0 && values > 0);
    const QString saved = QString("%1 saved, %2").arg(values).arg(bytes_text(cut.activation_bytes)),
                  kept = QString("%1 inputs kept, %2").arg(inputs).arg(bytes_text(cut.input_bytes));
    for (const QString& line : {saved, kept})
      QVERIFY2(std::ranges::any_of(bench.window().findChildren<QLabel*>(),
                                   [&](const QLabel* label) { return label->text().startsWith(line); }),
               qPrintable(line));
    const NodeAccount account = account_of(*bench.current());
    QVERIFY(std::ranges::any_of(account.rows, [&](const NodeAccount::Row& row) { return row.html.endsWith(kept); }));
  }

  void values_and_halves_are_of_the_graph_above_them() {
    Workbench bench(tools());
    const QString other = open_two(bench, two_graphs("values"));
    auto& values = bench.get<ValuesController>();
    auto& aot = bench.get<AotController>();
    values.look_at("gelu");
    const QString title = bench.window().windowTitle();
    bench.show(other);                               // while they are computed
    QVERIFY(bench.window().windowTitle() != title);  // before it is drawn
    QVERIFY(idle(bench));
    QVERIFY(!values.view()->pair());
    QCOMPARE(bench.window().page(), bench.get<GraphController>().widget());
    aot.show();
    QVERIFY(idle(bench));
    const int saved = saved_in(aot);
    QVERIFY(saved > 0);
    bench.get<GraphController>().show();
    for (const auto& [key, document] : bench.documents())
      if (key != other) bench.show(key);
    QVERIFY(idle(bench));
    QCOMPARE(saved_in(aot), 0);
    command(bench, "Show forward and backward")->trigger();
    QVERIFY(idle(bench));
    QVERIFY(saved_in(aot) > 0 && saved_in(aot) != saved);
  }

  void a_cancelled_comparison_opens_no_values_later() {
    WorkbenchTools slow = tools();
    slow.backends.push_back({"slow", [](const Progress& progress) -> CompileFn {
                               return [&progress](const Graph&) -> Result<CompiledFn> {
                                 return wait_for_cancel(progress);
                               };
                             }});
    slow.doubted = "slow";
    Workbench bench(slow);
    bench.window().show();
    bench.open(folder_.write("later.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    auto& values = bench.get<ValuesController>();
    values.show();  // of the worst row of a comparison
    QVERIFY(cancelled(bench));
    QVERIFY(says(values.view(), "Nothing was compared"));
    bench.get<GraphController>().show();
    auto& compare = bench.get<CompareController>();
    compare.compare({"interp", "broken", true, Tolerance{}, {}});
    QVERIFY(idle(bench));
    QCOMPARE(bench.window().page(), bench.get<GraphController>().widget());
    // The copied command is that of the report, not of what was chosen since.
    for (QComboBox* box : compare.view()->findChildren<QComboBox*>()) box->setCurrentText("interp");
    QVERIFY2(bench.command_line().contains(" --backends interp,broken "), qPrintable(bench.command_line()));
  }

  void a_closed_file_takes_what_was_found_along() {
    Workbench bench(tools());
    bench.window().show();
    const QString path = folder_.write("closed.py", *tests::joint_graph(2));
    auto& compare = bench.get<CompareController>();
    bench.open(path);
    QVERIFY(wait_shown(bench));
    compare.compare({"interp", "broken", true, Tolerance{}, {}});
    QVERIFY(idle(bench));
    QVERIFY(compare.view()->table()->model()->rowCount() > 0);
    bench.close_file(path);
    QCOMPARE(compare.view()->table()->model()->rowCount(), 0);
    bench.open(path);
    QVERIFY(wait_shown(bench));
    QVERIFY(idle(bench));
    QCOMPARE(compare.view()->table()->model()->rowCount(), 0);
  }
};

QTEST_MAIN(TestState)
#include "test_state.moc"
