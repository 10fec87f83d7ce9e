// One state, one owner: what is cancelled leaves what was there before, what is closed or covered by another graph
// goes.
#include <QAction>
#include <QComboBox>
#include <QDir>
#include <QLabel>
#include <QSignalSpy>
#include <QTest>
#include <QTextBrowser>
#include <atomic>

#include "tests/support/fx.h"
#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/aot/aot_controller.h"
#include "views/compare/compare_controller.h"
#include "views/diff/diff_controller.h"
#include "views/inspector/inspector.h"
#include "views/kernels/kernels_controller.h"
#include "views/look/format.h"
#include "views/passes/passes_controller.h"
#include "views/run/run_controller.h"
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

bool idle(Session& bench) {
  return QTest::qWaitFor([&] { return bench.jobs().idle(); }, 60000);
}

bool cancelled(Session& bench) {
  bench.jobs().cancel_all();
  return idle(bench);
}

bool says(QWidget* view, const QString& words) {
  return std::ranges::any_of(view->findChildren<QLabel*>(),
                             [&](const QLabel* label) { return label->text() == words; });
}

QAction* command(Session& bench, const QString& name) {
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
  static QString open_two(Session& bench, const QString& path) {
    bench.window().show();
    bench.documents().open(path);
    if (!wait_shown(bench)) return {};
    for (const auto& [key, document] : bench.documents().all())
      if (document.get() != bench.documents().current()) return key;
    return {};
  }

 private Q_SLOTS:
  void initTestCase() { folder_.keep_settings_here(); }

  void a_cancelled_drawing_leaves_pins_budget_and_folds() {
    Session bench(tools());
    bench.window().show();
    QVERIFY(open_unfolded(bench, folder_.write("cancel.py", *tests::joint_graph(4))));
    const Document& document = *bench.documents().current();
    const auto kept = std::ranges::find(document.cut->saved, false, &SavedValue::is_input);
    QVERIFY(kept != document.cut->saved.end());
    const QString name = QString::fromStdString(kept->name);
    bench.pins().pin(name, Pin::Recompute);
    QVERIFY(cancelled(bench));
    QVERIFY(document.pins.empty());
    QVERIFY(document.earlier_pins.empty());  // nothing to undo
    const auto folded = document.folded;
    bench.drawing().fold_all(true);
    QVERIFY(cancelled(bench));
    QCOMPARE(document.folded, folded);
    QVERIFY(document.folding == Folding::Asked);
    bench.pins().pin(name, Pin::Recompute);  // not cancelled, it stays
    QVERIFY(idle(bench));
    QCOMPARE(document.pins.size(), std::size_t{1});
    bench.pins().undo();
    QVERIFY(cancelled(bench));
    QCOMPARE(document.pins.size(), std::size_t{1});
    QVERIFY(command(bench, "Undo the last pin")->isEnabled());
  }

  void a_cancelled_graph_gives_way_to_the_one_before() {
    Session bench(tools());
    const QString other = open_two(bench, two_graphs("cancelled"));
    QVERIFY(!other.isEmpty());
    const QString first = bench.documents().current()->key, title = bench.window().windowTitle();
    bench.screen().show(other);
    QVERIFY(bench.window().windowTitle() != title);  // named as soon as it is asked for
    QVERIFY(cancelled(bench));
    QCOMPARE(bench.documents().current()->key, first);
    QCOMPARE(bench.window().windowTitle(), title);
    QVERIFY(picture(bench)->scene() == bench.documents().current()->scene.get());
    bench.screen().show(other);
    QVERIFY(idle(bench));
    QCOMPARE(bench.documents().current()->key, other);
  }

  void counts_stand_beside_the_bytes_of_the_same_values() {
    Session bench(tools());
    bench.window().show();
    bench.documents().open(folder_.write("counts.py", *tests::joint_graph(4)));
    QVERIFY(wait_shown(bench));
    const CutSummary& cut = *bench.documents().current()->cut;
    const auto inputs = std::ranges::count_if(cut.saved, &SavedValue::is_input);
    const auto values = std::ssize(cut.saved) - inputs;
    QVERIFY(inputs > 0 && values > 0);
    const QString saved = QString("%1 saved, %2").arg(values).arg(bytes_text(cut.activation_bytes)),
                  kept = QString("%1 inputs kept, %2").arg(inputs).arg(bytes_text(cut.input_bytes));
    for (const QString& line : {saved, kept})
      QVERIFY2(std::ranges::any_of(bench.window().findChildren<QLabel*>(),
                                   [&](const QLabel* label) { return label->text().startsWith(line); }),
               qPrintable(line));
    const NodeAccount account = account_of(*bench.documents().current());
    QVERIFY(std::ranges::any_of(account.rows, [&](const NodeAccount::Row& row) { return row.html.endsWith(kept); }));
    bench.views().get<AotController>().show();
    QVERIFY(idle(bench));
    QVERIFY(std::ranges::any_of(
        bench.views().get<AotController>().view()->findChildren<QLabel*>(),
        [&](const QLabel* label) { return label->text().startsWith("Ours: " + saved + "; " + kept); }));
  }

  void a_node_of_a_pass_step_is_told_as_the_step_has_it() {
    Session bench(tools());
    bench.window().show();
    const auto graph = partita::testing::fx(
        "x: <f32[8][1]>", "a: <f32[8][1]> = $mul.Tensor(x, 1)\nb: <f32[8][1]> = $sin(a)\nreturn (b,)");
    bench.documents().open(folder_.write("step.py", *graph));
    QVERIFY(wait_shown(bench));
    auto& passes = bench.views().get<PassesController>();
    passes.run();
    QVERIFY(idle(bench));
    const std::vector<PassStep>& steps = passes.view()->history()->steps;
    const auto without_a =
        std::ranges::find_if(steps, [](const PassStep& step) { return !step.scene->picture.graph->find("a"); });
    QVERIFY(without_a != steps.end());
    const auto reads = [&]() -> QString {
      const auto* page = bench.window().findChild<Inspector*>()->findChild<QTextBrowser*>();
      return page->toHtml().contains("node:a") ? "a" : page->toHtml().contains("node:x") ? "x" : "";
    };
    passes.view()->go_to(0);
    bench.selection().select_node("b");
    QCOMPARE(reads(), QString("a"));
    passes.view()->go_to(static_cast<int>(without_a - steps.begin()));
    QCOMPARE(bench.selection().spot().node, QString("b"));  // what the pass changed first
    QCOMPARE(reads(), QString("x"));
    bench.selection().select_node({});
    const auto* page = bench.window().findChild<Inspector*>()->findChild<QTextBrowser*>();
    QVERIFY2(page->toPlainText().contains("after " + without_a->name), qPrintable(page->toPlainText()));
    QVERIFY2(page->toPlainText().contains("3 nodes"), qPrintable(page->toPlainText()));
    bench.views().show("graph");
    bench.selection().select_node("b");
    QCOMPARE(reads(), QString("a"));
  }

  void values_and_halves_are_of_the_graph_above_them() {
    Session bench(tools());
    const QString other = open_two(bench, two_graphs("values"));
    auto& values = bench.views().get<ValuesController>();
    auto& aot = bench.views().get<AotController>();
    values.look_at("gelu");
    bench.screen().show(other);  // while they are computed
    QVERIFY(idle(bench));
    QVERIFY(!values.view()->pair());
    QCOMPARE(bench.window().page(), bench.views().get<GraphController>().widget());
    values.look_at("gelu");
    QVERIFY(cancelled(bench));
    QVERIFY(says(values.view(), "cancelled"));

    aot.show();
    QVERIFY(idle(bench));
    const int saved = saved_in(aot);
    QVERIFY(saved > 0);
    bench.views().get<GraphController>().show();
    for (const auto& [key, document] : bench.documents().all())
      if (key != other) bench.screen().show(key);
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
    slow.suspect = "slow";
    Session bench(slow);
    bench.window().show();
    bench.documents().open(folder_.write("later.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    auto& values = bench.views().get<ValuesController>();
    values.show();  // of the worst row of a comparison
    QVERIFY(cancelled(bench));
    QVERIFY(says(values.view(), "Nothing was compared"));
    bench.views().get<GraphController>().show();
    auto& compare = bench.views().get<CompareController>();
    compare.compare({"interp", {"broken"}, true, Tolerance{}, {}});
    QVERIFY(idle(bench));
    QCOMPARE(bench.window().page(), bench.views().get<GraphController>().widget());
    // The copied command is that of the report, not of what was chosen since.
    for (QComboBox* box : compare.view()->findChildren<QComboBox*>()) box->setCurrentText("interp");
    QVERIFY2(bench.command_line().contains(" --backends interp,broken "), qPrintable(bench.command_line()));
    // Another cut does not fill the table anew: with thousands of rows that would be felt.
    const TableModel* table = compare.view()->findChild<TablePanel*>()->model();
    QVERIFY(table->rowCount() > 0);
    QSignalSpy filled(table, &QAbstractItemModel::modelReset);
    bench.views().get<GraphController>().bar()->budget()->setValue(0);
    QTRY_COMPARE(bench.documents().current()->memory_budget, 0.0);
    QVERIFY(idle(bench));
    QCOMPARE(filled.size(), 0);
  }

  /// The window's name for it means nothing to the command line.
  void a_planted_fault_is_copied_as_a_column() {
    WorkbenchTools planted = tools();
    for (WorkbenchTools::BackendChoice& backend : planted.backends)
      if (backend.name == "broken") backend.side = "cpu+plant=aten.mm.default:wrong";
    Session bench(planted);
    bench.window().show();
    bench.documents().open(folder_.write("planted.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    bench.views().get<CompareController>().compare({"interp", {"broken"}, true, Tolerance{}, {}});
    QVERIFY(idle(bench));
    const QString words = bench.command_line();
    QVERIFY2(words.contains(" --reference interp --against ") && words.contains("cpu+plant=aten.mm.default:wrong") &&
                 !words.contains("broken"),
             qPrintable(words));
  }

  void a_closed_file_takes_what_was_found_along() {
    Session bench(tools());
    bench.window().show();
    const QString path = folder_.write("closed.py", *tests::joint_graph(2));
    auto& compare = bench.views().get<CompareController>();
    auto& passes = bench.views().get<PassesController>();
    bench.documents().open(path);
    QVERIFY(wait_shown(bench));
    compare.compare({"interp", {"broken"}, true, Tolerance{}, {}});
    QVERIFY(idle(bench));
    passes.run();
    QVERIFY(idle(bench));
    QVERIFY(passes.view()->history());
    bench.documents().close_file(path);
    QVERIFY(!passes.view()->history());
    QCOMPARE(compare.view()->table()->model()->rowCount(), 0);
    bench.documents().open(path);
    QVERIFY(wait_shown(bench));
    QVERIFY(idle(bench));
    QCOMPARE(compare.view()->table()->model()->rowCount(), 0);
    QVERIFY(!passes.view()->history());
  }

  void differences_are_copied_as_a_command_and_survive_a_cancel() {
    Session bench(tools());
    bench.window().show();
    auto& diff = bench.views().get<DiffController>();
    for (int layers : {2, 3}) {
      bench.documents().open(folder_.write(QString("%1 layers.py").arg(layers), *tests::joint_graph(layers)));
      QVERIFY(wait_shown(bench));
    }
    diff.show();
    QVERIFY(says(diff.view(), "comparing…"));
    QVERIFY(cancelled(bench));
    QVERIFY(says(diff.view(), "cancelled"));
    diff.show();
    QVERIFY(idle(bench));
    const QString summary = diff.view()->summary();
    const int rows = diff.view()->table()->model()->rowCount();
    QVERIFY(rows > 0);
    QCOMPARE(bench.command_line(), QString("partita diff '%1/2 layers.py' '%1/3 layers.py'").arg(folder_.path()));
    diff.show();
    QVERIFY(cancelled(bench));
    QCOMPARE(diff.view()->summary(), summary);
    QCOMPARE(diff.view()->table()->model()->rowCount(), rows);
  }

  void cancelled_runs_and_plans_leave_what_was_there() {
    WorkbenchTools given = tools();
    std::atomic<bool> plans = false;
    given.kernels = [&plans](const Artefact&, const KernelRequest& request,
                             const Progress& progress) -> Result<std::vector<PlannedGraph>> {
      if (!plans || request.measure) return wait_for_cancel(progress);
      std::vector<PlannedGraph> graphs(1);
      graphs[0].report.rows.resize(3);
      return graphs;
    };
    static constexpr Compiler choices[] = {{"quick", "", false, nullptr}, {"slow", "", false, nullptr}};
    given.compilers = choices;
    given.run = [](const Artefact&, const CompilerRequest& request, const Progress& progress) -> Result<CompilerRun> {
      if (request.compiler == "slow") return wait_for_cancel(progress);
      CompilerRun result;
      result.results.tensors["output.0"] = *Tensor::zeros(DType::Float32, {2});
      return result;
    };
    Session bench(given);
    const QString other = open_two(bench, two_graphs("runs"));
    KernelsView* kernels = bench.views().get<KernelsController>().view();
    QVERIFY(bench.views().show("kernels"));
    QVERIFY(says(kernels, "planning…"));
    QVERIFY(cancelled(bench));
    QVERIFY(says(kernels, "cancelled"));
    plans = true;
    QVERIFY(bench.views().show("kernels"));  // asked again
    QVERIFY(idle(bench));
    QVERIFY(says(kernels, "3 steps"));
    bench.views().get<KernelsController>().plan(true);
    QVERIFY(says(kernels, "measuring…"));
    QVERIFY(cancelled(bench));
    QVERIFY(says(kernels, "3 steps"));
    QVERIFY(kernels->list());
    QVERIFY(!bench.command_line().contains("--random-weights"));  // these are not measured
    bench.views().get<GraphController>().show();

    RunView* run = bench.views().get<RunController>().view();
    run->choose("quick", false);
    bench.views().get<RunController>().run(run->request());
    QVERIFY(idle(bench));
    const QString summary = run->summary();
    QCOMPARE(run->results()->model()->rowCount(), 1);
    run->choose("slow", false);
    bench.views().get<RunController>().run(run->request());
    QCOMPARE(run->summary(), QString("running…"));
    QVERIFY(cancelled(bench));
    QCOMPARE(run->summary(), summary);
    QCOMPARE(run->results()->model()->rowCount(), 1);
    bench.views().get<RunController>().run(run->request());
    bench.screen().show(other);  // the run goes on, what it finds belongs to the other graph
    QTest::qWait(10);
    QVERIFY(cancelled(bench));
    QCOMPARE(run->summary(), QString());
  }
};

QTEST_MAIN(TestState)
#include "test_state.moc"
