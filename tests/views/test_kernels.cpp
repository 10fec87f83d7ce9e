// Kernels and questions in the window.
#include <QAction>
#include <QMenuBar>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <set>

#include "app/window_tools.h"
#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/compare/compare_controller.h"
#include "views/kernels/kernels_controller.h"
#include "views/questions/curve_plot.h"
#include "views/questions/questions_controller.h"
#include "views/window/window_session.h"

using namespace partita;
using namespace partita::views;
using namespace partita::tests;

class TestKernels : public QObject {
  Q_OBJECT

  TestFolder folder_;

 private Q_SLOTS:
  void initTestCase() { folder_.keep_settings_here(); }

  void questions_are_answered_and_their_rows_are_nodes() {
    auto given = program_tools({}, PARTITA_BINARY);
    QVERIFY(bool(given));
    given->store_file.clear();
    Session bench(*given);
    bench.window().show();
    QVERIFY(open_unfolded(bench, folder_.write("asked.py", *tests::joint_graph(3))));
    auto& questions = bench.views().get<QuestionsController>();
    const auto ask = [&](const QString& words) {
      questions.ask(words.split(' '));
      return QTest::qWaitFor([&] { return bench.jobs().idle(); }, 60000);
    };
    QVERIFY(ask("users gelu_1"));
    std::set<QString> found, expected;
    for (const Row& row : questions.view()->model()->rows()) found.insert(row.node);
    for (const Node* user : bench.documents().current()->graph->find("gelu_1")->users())
      expected.insert(QString::fromStdString(user->name()));
    QCOMPARE(found, expected);
    QVERIFY(bench.command_line().startsWith("partita query "));
    QVERIFY2(bench.command_line().contains(" users gelu_1"), qPrintable(bench.command_line()));
    questions.view()->view()->setCurrentIndex(questions.view()->view()->model()->index(0, 0));
    QVERIFY(expected.contains(bench.selection().spot().node));
    QVERIFY(ask("why"));
    QVERIFY(questions.view()->answer().contains("there are users"));
    // What a step holds is drawn beside its rows; other answers have no plot.
    const auto* plot = questions.view()->findChild<CurvePlot*>();
    QVERIFY(plot && plot->isHidden());
    QVERIFY(ask("peak"));
    QVERIFY2(plot->isVisible() && plot->accessibleName().contains("our cut: at most "),
             qPrintable(plot->accessibleName()));
    QVERIFY(plot->width() >= 240 && questions.view()->view()->width() >= plot->width());
    // Every question is a command, and asks about the chosen node.
    bench.selection().select_node("gelu_1");
    QAction* users = nullptr;
    for (QAction* action : bench.window().menuBar()->findChild<QMenu*>("Ask")->actions())
      if (action->text().contains("users NODE")) users = action;
    QVERIFY(users);
    users->trigger();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 60000));
    QCOMPARE(questions.view()->question(), QString("users gelu_1"));
    QCOMPARE(questions.view()->model()->rows().size(), expected.size());
  }

  void kernels_are_linked_to_nodes_and_lines() {
    auto given = program_tools({}, PARTITA_BINARY);
    QVERIFY(bool(given));
    given->store_file.clear();
    Session bench(*given);
    bench.window().show();
    bench.documents().open(QString(PARTITA_SOURCE_DIR) + "/resources/samples/mlp/program.pt2");
    QVERIFY(wait_shown(bench));
    QVERIFY(bench.views().show("kernels"));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 60000));
    KernelsView* view = bench.views().get<KernelsController>().view();
    const auto list = view->list();
    QVERIFY(list);
    QCOMPARE(view->table()->model()->rowCount(), static_cast<int>(list->report.rows.size()));
    QCOMPARE(view->panes().size(), 3u);

    // A step that fuses several nodes: the lines of each are marked in all panes, and clicks go both ways.
    const auto& rows = list->report.rows;
    const auto fused = std::ranges::find_if(
        rows, [](const auto& row) { return row.kind == schedule::KernelRow::Kind::Kernel && row.origins.size() > 2; });
    QVERIFY(fused != rows.end());
    QTableView* table = view->table()->view();
    table->setCurrentIndex(table->model()->index(static_cast<int>(fused - rows.begin()), 0));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && view->panes()[2]->line_count() > 0; }, 60000));
    QSignalSpy chosen(view, &KernelsView::node_chosen);
    for (LinkedPane* pane : view->panes()) {
      std::set<int> met;
      for (int line = 0; line < pane->line_count(); ++line)
        met.insert(pane->nodes_at(line).begin(), pane->nodes_at(line).end());
      QVERIFY2(met.size() >= 2, qPrintable(pane->title()));
    }
    LinkedPane* assembly = view->panes()[2];
    QTest::keyClick(assembly, Qt::Key_End);
    while (chosen.isEmpty() && assembly->line_count() > 0) QTest::keyClick(assembly, Qt::Key_Up);
    const QString node = chosen.front().front().toString();
    QVERIFY(std::ranges::find(fused->origins, node.toStdString()) != fused->origins.end());
    for (LinkedPane* pane : view->panes()) QVERIFY(pane->marked() >= 0);

    // Times come from another process.
    bench.views().get<KernelsController>().plan(true);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 120000));
    QVERIFY(view->list() && view->list()->report.limit);
    for (const auto& row : view->list()->report.rows) QVERIFY(row.seconds && *row.seconds > 0);
    // The panel below may still show what was done before.
    bench.views().get<CompareController>().compare({"interp", {"cpu"}, false, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 60000));
    QVERIFY(bench.views().get<CompareController>().on_screen());
    QVERIFY2(bench.command_line().startsWith("partita kernels "), qPrintable(bench.command_line()));

    // What inductor wrote, from a log.
    Session logged(*given);
    logged.window().show();
    logged.documents().open(QString(PARTITA_SOURCE_DIR) + "/tests/load/inductor.log");
    QVERIFY(wait_shown(logged));
    KernelsView* theirs = logged.views().get<KernelsController>().view();
    logged.views().get<KernelsController>().find_inductor();
    QVERIFY(QTest::qWaitFor([&] { return logged.jobs().idle() && theirs->list(); }, 60000));
    QCOMPARE(theirs->list()->report.rows.front().name, std::string("extern_kernels.addmm"));
    theirs->select("mul_2", nullptr);
    QVERIFY(theirs->step() >= 0);
    QCOMPARE(theirs->list()->report.rows[static_cast<std::size_t>(theirs->step())].name,
             std::string("cpp_fused_gelu_0"));
  }
};

QTEST_MAIN(TestKernels)
#include "test_kernels.moc"
