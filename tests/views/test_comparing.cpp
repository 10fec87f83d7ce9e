// The window compares: columns, carried-back rows, values, and comparisons of the past.
#include <QTest>

#include "app/window_tools.h"
#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/compare/compare_controller.h"
#include "views/history/history_controller.h"
#include "views/tensor/values_controller.h"
#include "views/window/window_session.h"

using namespace partita;
using namespace partita::views;
using namespace partita::tests;

class TestComparing : public QObject {
  Q_OBJECT

  TestFolder folder_;

 private Q_SLOTS:
  void initTestCase() { folder_.keep_settings_here(); }

  void a_planted_bug_is_the_first_row() {
    Session bench(tools());
    bench.window().show();
    bench.documents().open(folder_.write("compare.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    bench.views().get<CompareController>().compare({"interp", {"broken"}, true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    const auto& rows = bench.views().get<CompareController>().view()->table()->model()->rows();
    QVERIFY(!rows.empty());
    // Both have the bug, also the one that reads a wrong value already.
    QVERIFY(rows[0].cells[0].text == "differs" && rows[1].cells[0].text == "differs");
    QCOMPARE((std::set<QString>{rows[0].node, rows[1].node}), (std::set<QString>{"gelu", "gelu_1"}));
    std::size_t inherited = 0;  // what only reads a wrong value is not wrong itself
    while (rows[inherited + 2].cells[0].text == "inherited") ++inherited;
    QVERIFY(inherited > 5);
    for (std::size_t i = inherited + 2; i < rows.size(); ++i) QCOMPARE(rows[i].cells[0].text, QString("agrees"));
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (!rows[i].cells[9].text.isEmpty()) QCOMPARE(rows[i].cells[9].number > 0.2, i < 2);
    auto facts = bench.documents().current()->facts.find("gelu");
    QVERIFY(facts != bench.documents().current()->facts.end());
    QVERIFY(facts->second.error > 0.2 && facts->second.error < 0.3);
    bench.views().get<CompareController>().compare({"interp", {"interp"}, true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(bench.views().get<CompareController>().view()->table()->model()->rows()[0].cells[0].text,
             QString("agrees"));
  }

  void several_columns_are_compared_with_one_reference() {
    Session bench(tools());
    bench.window().show();
    bench.documents().open(folder_.write("columns.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    auto& comparison = bench.views().get<CompareController>();
    comparison.compare({"interp", {"broken", "interp"}, true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    TableModel* table = comparison.view()->table()->model();
    QCOMPARE(table->columns(), (QStringList{"Node or output", "broken", "interp", "Norm of interp", "From"}));
    QVERIFY(table->rows()[0].cells[1].text.startsWith("differs ") && table->rows()[0].cells[1].text.contains("alone"));
    QVERIFY(table->rows()[0].cells[2].text.startsWith("agrees 0"));
    QVERIFY(table->rows()[0].cells[3].number > 0);
    QVERIFY(bench.documents().current()->facts.at("gelu").wrong && !bench.documents().current()->facts.at("t").wrong);
    comparison.compare({"interp", {"broken"}, true, Tolerance{}, {}});  // one column has its details again
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(table->columns()[0], QString("Verdict"));
  }

  void rows_of_the_flows_graphs_are_carried_back() {
    auto given = program_tools("aten.gelu.default:wrong", PARTITA_BINARY);
    QVERIFY(bool(given));
    given->store_file = folder_.filePath("columns.sqlite").toStdString();
    Session bench(*given);
    bench.window().show();
    bench.documents().open(QString(PARTITA_SOURCE_DIR) + "/resources/samples/mlp/program.pt2");
    QVERIFY(wait_shown(bench));
    auto& comparison = bench.views().get<CompareController>();
    const QString io = QString(PARTITA_SOURCE_DIR) + "/resources/samples/mlp/io.safetensors";
    comparison.compare({"interp", {"planted", "f64", "stored"}, true, Tolerance{}, io.toStdString(), true});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 120000));
    TableModel* table = comparison.view()->table()->model();
    QCOMPARE(table->columns(), (QStringList{"Node or output", "planted", "f64", "stored", "Norm of interp", "From"}));
    const auto has = [&](const QString& name) {
      return std::ranges::find(table->rows(), name, [](const Row& r) { return r.cells[0].text; });
    };
    const auto gelu = has("forward: gelu");
    QVERIFY(gelu != table->rows().end());
    QVERIFY(gelu->cells[1].text.startsWith("differs") && gelu->cells[2].text.startsWith("agrees"));
    QVERIFY(has("backward: gelu_backward") != table->rows().end() || has("backward: mm") != table->rows().end());
    QVERIFY(has("results: output.0") != table->rows().end());
    std::size_t carried = 0;  // each row of a call stands for a node of the exported graph
    for (const Row& row : table->rows())
      carried += bench.documents().current()->graph->find(row.node.toStdString()) != nullptr;
    QVERIFY2(carried * 2 > table->rows().size(), qPrintable(QString::number(carried)));
    QVERIFY(bench.documents().current()->facts.at("gelu").wrong);
    // The values of a row are computed again in the graph that it is of, on all columns.
    TensorView* view = bench.views().get<ValuesController>().view();
    const auto look_at = [&](const QString& name) {
      const auto row = has(name);
      comparison.view()->table()->set_current_row(static_cast<int>(row - table->rows().begin()));
      bench.views().get<ValuesController>().look_at(row->node);
      return QTest::qWaitFor([&] { return bench.jobs().idle() && view->grid(); }, 60000);
    };
    QVERIFY(look_at("forward: gelu"));
    QCOMPARE(view->pairs().size(), std::size_t{2});
    QCOMPARE(view->pairs()[0]->found_name, QString("planted"));
    QVERIFY(view->pairs()[0]->first_wrong >= 0 && view->pairs()[1]->first_wrong < 0);
    QVERIFY2(view->verdict().contains("stored: has results of the program only"), qPrintable(view->verdict()));
    QVERIFY(look_at("results: output.0"));
    QVERIFY(QTest::qWaitFor([&] { return view->pairs().size() == 3; }, 60000));
    QCOMPARE(view->pairs()[2]->found_name, QString("stored"));
  }

  void the_values_behind_a_row_are_shown() {
    Session bench(tools());
    bench.window().show();
    bench.documents().open(folder_.write("values.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    bench.views().get<CompareController>().compare({"interp", {"broken"}, true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    Watchdog watchdog;
    bench.views().get<ValuesController>().look_at("gelu");
    TensorView* view = bench.views().get<ValuesController>().view();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && view->grid(); }, 30000));
    QCOMPARE(bench.window().page(), static_cast<QWidget*>(view));
    QCOMPARE(view->pair()->found_name, QString("broken"));
    QCOMPARE(view->pair()->first_wrong, 5);
    QVERIFY(view->readout().startsWith("[0, 5]"));
    QVERIFY(view->readout().contains("over tolerance"));
    QVERIFY(bench.window().grab().toImage().width() > 100);
    view->choose_cell(1, 2);
    QVERIFY(view->readout().startsWith("[1, 2]"));
    // While values are shown, they follow the selected row; the graph's own results are rows too.
    Q_EMIT bench.views().get<CompareController>().view()->node_chosen("output.0");
    QVERIFY(QTest::qWaitFor([&] { return view->pair() && view->pair()->name == "output.0" && view->grid(); }, 30000));
    bench.views().get<ValuesController>().look_at("no such row");
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && !view->pair(); }, 30000));
    QVERIFY2(watchdog.blocked().isEmpty(), qPrintable(watchdog.blocked()));
  }

  void the_values_of_all_columns_are_side_by_side() {
    WorkbenchTools three = tools();
    three.backends.push_back({"worse", [](const Progress&) { return interpreter(1); }});
    Session bench(three);
    bench.window().show();
    bench.documents().open(folder_.write("columns.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    bench.views().get<CompareController>().compare({"interp", {"broken", "worse"}, true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    bench.views().get<ValuesController>().look_at("gelu");
    TensorView* view = bench.views().get<ValuesController>().view();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && view->grid(); }, 30000));
    QCOMPARE(view->pairs().size(), std::size_t{2});
    QCOMPARE(view->pairs()[1]->found_name, QString("worse"));
    QVERIFY2(view->readout().startsWith("[0, 5]   interp ") && view->readout().contains("   broken ") &&
                 view->readout().contains("   worse "),
             qPrintable(view->readout()));
    const auto shown = view->readout().split("   ");
    QVERIFY(std::abs(shown[3].section(' ', 1, 1).toDouble() - shown[1].section(' ', 1, 1).toDouble() - 1) < 1e-4);
    QCOMPARE(view->verdict().count('\n'), 1);
    QVERIFY(view->verdict().contains("norm "));
    view->choose_column(1);
    QCOMPARE(view->pair()->found_name, QString("worse"));
    QVERIFY(bench.window().grab().toImage().width() > 100);
    // And back to one column.
    bench.views().get<CompareController>().compare({"interp", {"broken"}, true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    bench.views().get<ValuesController>().look_at("gelu");
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && view->pairs().size() == 1 && view->grid(); }, 30000));
    QVERIFY(view->readout().contains("difference"));
  }

  void earlier_checks_are_shown_side_by_side() {
    WorkbenchTools with_store = tools();
    with_store.store_file = folder_.filePath("past.sqlite").toStdString();
    Session bench(with_store);
    bench.window().show();
    bench.documents().open(folder_.write("past.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    for (const char* found : {"broken", "interp"}) {
      QTest::qWait(1100);  // the store counts seconds
      bench.views().get<CompareController>().compare({"interp", {found}, true, Tolerance{}, {}});
      QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    }
    QVERIFY(bench.views().show("history"));
    TablePanel* past = bench.views().get<HistoryController>().view()->past();
    QVERIFY(QTest::qWaitFor([&] { return past->model()->rowCount() == 2; }, 30000));
    QCOMPARE(past->model()->rows()[0].cells[2].text, QString("ok"));
    QCOMPARE(past->model()->rows()[1].cells[2].text, QString("differs"));
    const auto& beside = bench.views().get<HistoryController>().view()->beside()->model()->rows();
    QVERIFY(QTest::qWaitFor([&] { return !beside.empty(); }, 30000));
    QCOMPARE(beside[0].cells.back().text, QString("fixed"));  // the older report is on the left
  }
};

QTEST_MAIN(TestComparing)
#include "test_comparing.moc"
