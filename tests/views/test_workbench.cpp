// Drives the window as a user does, on samples of the repo and on graphs made here.
#include <QDockWidget>
#include <QEnterEvent>
#include <QLabel>
#include <QStandardPaths>
#include <QTest>
#include <fstream>

#include <fmt/format.h>

#include "app/window_tools.h"
#include "tests/support/corpus.h"
#include "tests/support/fx.h"
#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/aot/aot_controller.h"
#include "views/code/code_controller.h"
#include "views/compare/compare_controller.h"
#include "views/graph/export.h"
#include "views/graph/graph_controller.h"
#include "views/history/history_controller.h"
#include "views/passes/passes_controller.h"
#include "views/run/run_controller.h"
#include "views/tensor/values_controller.h"
#include "views/window/workbench.h"

using namespace partita;
using namespace partita::views;
using namespace partita::tests;

class TestWorkbench : public QObject {
  Q_OBJECT

  TestFolder folder_;

 private Q_SLOTS:
  void initTestCase() { folder_.keep_settings_here(); }

  void a_file_opens_and_one_selection_is_everywhere() {
    Workbench bench(tools());
    bench.window().show();
    QVERIFY(open_unfolded(bench, folder_.write("joint.py", *tests::joint_graph(4))));
    QVERIFY(picture(bench)->scene()->picture.joint);
    QVERIFY(bench.current()->cut);

    bench.selection().select_node("gelu_2");
    QCOMPARE(picture(bench)->selected_node(), QString("gelu_2"));
    QCOMPARE(code(bench)->current_line(), bench.current()->code->line_of("gelu_2"));

    QTest::keyClick(picture(bench), Qt::Key_Down);  // along the edge, to the residual's add
    QCOMPARE(bench.selection().spot().node, QString("add_2"));
    QTest::keyClick(picture(bench), Qt::Key_Up);
    QCOMPARE(bench.selection().spot().node, QString("gelu_2"));
    bench.selection().back();
    QCOMPARE(picture(bench)->selected_node(), QString("add_2"));

    QTest::keyClick(code(bench), Qt::Key_Home);
    QTest::keyClick(code(bench), Qt::Key_End);
    QTest::keyClick(code(bench), Qt::Key_Up);
  }

  void a_click_on_a_card_selects_it() {
    Workbench bench(tools());
    bench.window().show();
    QVERIFY(open_unfolded(bench, folder_.write("joint.py", *tests::joint_graph(3))));
    GraphView* view = picture(bench);
    view->select("addmm_1");
    const Scene& scene = *view->scene();
    const Box& box = scene.layout.boxes[scene.picture.card_by_key("gelu_1")];
    QTest::mouseClick(view, Qt::LeftButton, {}, view->to_view({box.center_x(), box.center_y()}).toPoint());
    QCOMPARE(bench.selection().spot().node, QString("gelu_1"));
  }

  void a_pin_changes_the_cut_and_the_command_line() {
    Workbench bench(tools());
    bench.window().show();
    QVERIFY(open_unfolded(bench, folder_.write("pins.py", *tests::joint_graph(4))));
    auto saved = [&](const std::string& name) {
      for (const SavedValue& value : bench.current()->cut->saved)
        if (value.name == name) return true;
      return false;
    };
    std::string kept;
    for (const SavedValue& value : bench.current()->cut->saved)
      if (kept.empty() && !value.is_input) kept = value.name;
    QVERIFY(!kept.empty());
    bench.selection().select_node(QString::fromStdString(kept));
    std::int64_t before = bench.current()->cut->activation_bytes;
    QTest::keyClick(picture(bench), Qt::Key_R);
    QVERIFY(wait_shown(bench));
    QVERIFY(!saved(kept));
    QCOMPARE(bench.current()->bytes_before.value_or(-1), before);
    QVERIFY(bench.command_line().startsWith("partita aot "));
    QVERIFY(bench.command_line().contains(QString::fromStdString("--recompute " + kept)));
    QTest::keyClick(picture(bench), Qt::Key_U);
    QVERIFY(wait_shown(bench));
    QVERIFY(saved(kept));
    QCOMPARE(bench.current()->cut->activation_bytes, before);
  }

  void a_module_folds_and_unfolds() {
    Workbench bench(tools());
    bench.window().show();
    auto graph = tests::joint_graph(3);
    QVERIFY(open_unfolded(bench, folder_.write("fold.py", *graph)));
    std::size_t cards = picture(bench)->scene()->picture.cards.size();
    QVERIFY(!picture(bench)->scene()->picture.frames.empty());  // source lines: FX text has no module paths
    QString key = QString::fromStdString(picture(bench)->scene()->picture.frames.front().key);
    bench.fold(key);
    QVERIFY(wait_shown(bench));
    QVERIFY(picture(bench)->scene()->picture.cards.size() < cards);
    bench.fold(key);
    QVERIFY(wait_shown(bench));
    QCOMPARE(picture(bench)->scene()->picture.cards.size(), cards);
  }

  /// The passes view shows the graph that a compiler's passes begin with.
  void passes_begin_as_compilers_do() {
    const auto graph = testing::fx("t: <f32[0][1]>, info: <i32[][]>",
                                   "w = torch.ops.higher_order.with_effects(t, "
                                   "torch.ops.aten._linalg_check_errors.default, info, 'inv', is_matrix = True)\n"
                                   "g: <f32[0][1]> = w[0]\nreturn (g,)");
    Workbench bench(tools());
    bench.open(folder_.write("effects.py", *graph));
    QVERIFY(wait_shown(bench));
    bench.get<PassesController>().run();
    QVERIFY(QTest::qWaitFor([&] { return bench.get<PassesController>().view()->history() != nullptr; }, 30000));
    const PassHistory& history = *bench.get<PassesController>().view()->history();
    QVERIFY(!history.steps[0].graph->find("w") && history.steps[0].graph->find("_linalg_check_errors"));
  }

  void passes_are_stepped_through() {
    Workbench bench(tools());
    bench.window().show();
    bench.open(folder_.write("passes.py", *tests::joint_graph(3)));
    QVERIFY(wait_shown(bench));
    bench.get<PassesController>().run();
    QVERIFY(QTest::qWaitFor([&] { return bench.get<PassesController>().view()->history() != nullptr; }, 30000));
    const PassHistory& history = *bench.get<PassesController>().view()->history();
    QVERIFY(history.steps.size() > 3);
    bench.get<PassesController>().view()->go_to(0);
    QCOMPARE(bench.get<PassesController>().view()->step(), 0);
    bench.get<PassesController>().view()->go_by(1, false);
    QCOMPARE(bench.get<PassesController>().view()->step(), 1);
    for (std::size_t i = 1; i < history.steps.size(); ++i)
      QCOMPARE(history.steps[i].diff != nullptr, history.steps[i].changed);
    QVERIFY(bench.command_line().startsWith("partita passes "));
    // Everything on the screen is of the step that is named above it.
    std::size_t changed = 1;
    while (!history.steps[changed].changed) ++changed;
    bench.get<PassesController>().view()->go_to(static_cast<int>(changed));
    QVERIFY(bench.window().windowTitle().contains("after " + history.steps[changed].name));
    QCOMPARE(code(bench)->document(), history.steps[changed].code.get());
    QVERIFY(!bench.get<GraphController>().bar()->budget()->isVisible());
    bench.show_view("graph");
    QVERIFY(!bench.window().windowTitle().contains("after "));
    QCOMPARE(code(bench)->document(), bench.current()->code.get());
    QVERIFY(bench.get<GraphController>().bar()->budget()->isVisible());
  }

  void a_planted_bug_is_the_first_row() {
    Workbench bench(tools());
    bench.window().show();
    bench.open(folder_.write("compare.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    bench.get<CompareController>().compare({"interp", "broken", true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    const auto& rows = bench.get<CompareController>().view()->table()->model()->rows();
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
    auto facts = bench.current()->facts.find("gelu");
    QVERIFY(facts != bench.current()->facts.end());
    QVERIFY(facts->second.error > 0.2 && facts->second.error < 0.3);
    bench.get<CompareController>().compare({"interp", "interp", true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(bench.get<CompareController>().view()->table()->model()->rows()[0].cells[0].text, QString("agrees"));
  }

  void several_columns_are_compared_with_one_reference() {
    Workbench bench(tools());
    bench.window().show();
    bench.open(folder_.write("columns.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    auto& comparison = bench.get<CompareController>();
    comparison.compare({"interp", "broken interp", true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    TableModel* table = comparison.view()->table()->model();
    QCOMPARE(table->columns(), (QStringList{"Node or output", "broken", "interp", "Norm of interp", "From"}));
    QVERIFY(table->rows()[0].cells[1].text.startsWith("differs ") && table->rows()[0].cells[1].text.contains("alone"));
    QVERIFY(table->rows()[0].cells[2].text.startsWith("agrees 0"));
    QVERIFY(table->rows()[0].cells[3].number > 0);
    QVERIFY(bench.current()->facts.at("gelu").wrong && !bench.current()->facts.at("t").wrong);
    comparison.compare({"interp", "broken", true, Tolerance{}, {}});  // one column has its details again
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(table->columns()[0], QString("Verdict"));
  }

  void rows_of_the_flows_graphs_are_carried_back() {
    auto given = program_tools("aten.gelu.default:wrong", PARTITA_BINARY);
    QVERIFY(bool(given));
    given->store_file = folder_.filePath("columns.sqlite").toStdString();
    Workbench bench(*given);
    bench.window().show();
    bench.open(QString(PARTITA_SOURCE_DIR) + "/resources/samples/mlp/program.pt2");
    QVERIFY(wait_shown(bench));
    auto& comparison = bench.get<CompareController>();
    const QString io = QString(PARTITA_SOURCE_DIR) + "/resources/samples/mlp/io.safetensors";
    comparison.compare({"interp", "planted f64 stored", true, Tolerance{}, io, true});
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
    for (const Row& row : table->rows()) carried += bench.current()->graph->find(row.node.toStdString()) != nullptr;
    QVERIFY2(carried * 2 > table->rows().size(), qPrintable(QString::number(carried)));
    QVERIFY(bench.current()->facts.at("gelu").wrong);
    // The values of a row are computed again in the graph that it is of, on all columns.
    TensorView* view = bench.get<ValuesController>().view();
    const auto look_at = [&](const QString& name) {
      const auto row = has(name);
      comparison.view()->table()->set_current_row(static_cast<int>(row - table->rows().begin()));
      bench.get<ValuesController>().look_at(row->node);
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
    Workbench bench(tools());
    bench.window().show();
    bench.open(folder_.write("values.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    bench.get<CompareController>().compare({"interp", "broken", true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    Watchdog watchdog;
    bench.get<ValuesController>().look_at("gelu");
    TensorView* view = bench.get<ValuesController>().view();
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
    Q_EMIT bench.get<CompareController>().view()->node_chosen("output.0");
    QVERIFY(QTest::qWaitFor([&] { return view->pair() && view->pair()->name == "output.0" && view->grid(); }, 30000));
    bench.get<ValuesController>().look_at("no such row");
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && !view->pair(); }, 30000));
    QVERIFY2(watchdog.longest_ms < 100, qPrintable(QString("blocked for %1 ms").arg(watchdog.longest_ms)));
  }

  void the_values_of_all_columns_are_side_by_side() {
    WorkbenchTools three = tools();
    three.backends.push_back({"worse", [](const Progress&) { return interpreter(1); }});
    Workbench bench(three);
    bench.window().show();
    bench.open(folder_.write("columns.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    bench.get<CompareController>().compare({"interp", "broken worse", true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    bench.get<ValuesController>().look_at("gelu");
    TensorView* view = bench.get<ValuesController>().view();
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
    bench.get<CompareController>().compare({"interp", "broken", true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    bench.get<ValuesController>().look_at("gelu");
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && view->pairs().size() == 1 && view->grid(); }, 30000));
    QVERIFY(view->readout().contains("difference"));
  }

  void earlier_checks_are_shown_side_by_side() {
    WorkbenchTools with_store = tools();
    with_store.store_file = folder_.filePath("past.sqlite").toStdString();
    Workbench bench(with_store);
    bench.window().show();
    bench.open(folder_.write("past.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    for (const char* found : {"broken", "interp"}) {
      QTest::qWait(1100);  // the store counts seconds
      bench.get<CompareController>().compare({"interp", found, true, Tolerance{}, {}});
      QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    }
    QVERIFY(bench.show_view("history"));
    TablePanel* past = bench.get<HistoryController>().view()->past();
    QVERIFY(QTest::qWaitFor([&] { return past->model()->rowCount() == 2; }, 30000));
    QCOMPARE(past->model()->rows()[0].cells[2].text, QString("ok"));
    QCOMPARE(past->model()->rows()[1].cells[2].text, QString("differs"));
    const auto& beside = bench.get<HistoryController>().view()->beside()->model()->rows();
    QVERIFY(QTest::qWaitFor([&] { return !beside.empty(); }, 30000));
    QCOMPARE(beside[0].cells.back().text, QString("fixed"));  // the older report is on the left
  }

  void entries_of_the_cache_say_why_they_were_made() {
    WorkbenchTools with_store = tools();
    with_store.store_file = folder_.filePath("entries.sqlite").toStdString();
    auto store = StoreFile::open(with_store.store_file);
    QVERIFY(bool(store));
    for (const std::string graph : {"a\nb\n", "x\ny\nz\n", "a\nc\n"}) {
      const KeyParts parts{{"graph", graph}, {"options", "train\n"}};
      QVERIFY(
          store->put_compiled({key_of(parts), "", "", ""}, {entry_bytes(parts, "code"), "forward", "fxgraph_cache"}));
    }
    Workbench bench(with_store);
    bench.window().show();
    QVERIFY(bench.show_view("history"));
    TablePanel* past = bench.get<HistoryController>().view()->past();
    QVERIFY(QTest::qWaitFor([&] { return past->model()->rowCount() == 3; }, 30000));
    const auto& beside = bench.get<HistoryController>().view()->beside()->model()->rows();
    past->choose_rows({0});  // beside the nearest before it
    QVERIFY(QTest::qWaitFor([&] { return beside.size() == 1; }, 30000));
    QCOMPARE(beside[0].cells[0].text + beside[0].cells[1].text + beside[0].cells[3].text, QString("graphbc"));
    past->choose_rows({0, 1});
    QVERIFY(QTest::qWaitFor([&] { return beside.size() == 3; }, 30000));
    QCOMPARE(beside[0].cells[1].text + beside[0].cells[3].text, QString("xa"));
  }

  void compilers_by_name_run_the_program() {
    auto given = program_tools({}, PARTITA_BINARY);
    QVERIFY(bool(given));
    given->store_file.clear();
    Workbench bench(*given);
    bench.window().show();
    bench.open(QString(PARTITA_SOURCE_DIR) + "/resources/samples/mlp/program.pt2");
    QVERIFY(wait_shown(bench));
    RunView* view = bench.get<RunController>().view();
    view->choose("print_compile", true);
    QVERIFY(!view->wants_folder());
    bench.get<RunController>().run(view->request());
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY2(view->summary().contains(" results as in the file; "), qPrintable(view->summary()));
    QVERIFY(view->results()->model()->rowCount() > 2);
    QCOMPARE(view->results()->model()->rows().front().cells[2].text, QString("agrees"));
    QCOMPARE(view->printed()->document()->text().count("def forward("), 2);  // forward and backward
    QVERIFY(view->printed()->document()->text().startsWith("def forward("));
    QVERIFY(bench.command_line().startsWith("partita run "));
    QVERIFY(bench.command_line().endsWith(" --train"));
    QVERIFY(bench.command_line().contains(" --compiler print_compile --inputs "));
    view->choose("partita", true);
    bench.get<RunController>().run(view->request());
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY2(view->summary().endsWith(" of it compiling") && view->details().contains("\nplan: "),
             qPrintable(view->details()));
    QVERIFY2(view->minimumSizeHint().width() < 700, qPrintable(QString::number(view->minimumSizeHint().width())));
    view->choose("graph_dumper_aot", true);
    QVERIFY(view->wants_folder());
    view->set_folder(folder_.path());
    bench.get<RunController>().run(view->request());
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(QDir(folder_.path()).exists("graph"));
  }

  void a_pass_opens_into_its_rewrites_and_is_skipped_for_a_try() {
    const Config before = config();
    Workbench bench(tools());
    bench.window().show();
    const auto graph = testing::fx("x: <f32[8][1]>",
                                   "a: <f32[8][1]> = $mul.Tensor(x, 1)\nb: <f32[8][1]> = $neg(a)\nc: <f32[8][1]> = "
                                   "$neg(b)\nd: <f32[8][1]> = $sin(c)\nreturn (d,)");
    bench.open(folder_.write("rewrites.py", *graph));
    QVERIFY(wait_shown(bench));
    auto& passes = bench.get<PassesController>();
    passes.run(true);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && passes.view()->history(); }, 30000));
    const auto step_of = [&](const QString& name) {
      const auto& steps = passes.view()->history()->steps;
      return static_cast<int>(std::ranges::find(steps, name, &PassStep::name) - steps.begin());
    };
    const int pass = step_of("rewrite_post_grad");
    const std::size_t steps = passes.view()->history()->steps.size();
    // Each pass says how far it moved the results; which is not at all here.
    QCOMPARE(passes.view()->history()->steps[static_cast<std::size_t>(pass)].off_by, std::optional(0.0));
    passes.show_rewrites(pass);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(passes.view()->history()->steps.size(), steps + 2);
    QCOMPARE(passes.view()->step(), pass + 1);
    const auto shown = [&](int i) -> const PassStep& {
      return passes.view()->history()->steps[static_cast<std::size_t>(pass + i)];
    };
    QCOMPARE(shown(1).name, QString("1  mul_one at a"));
    QVERIFY(!shown(1).graph->find("a") && shown(1).graph->find("c"));
    QVERIFY(!shown(2).graph);  // drawn when it is chosen
    passes.view()->go_to(pass + 2);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && shown(2).graph; }, 30000));
    QVERIFY(!shown(2).graph->find("c"));
    QCOMPARE(passes.view()->step(), pass + 2);
    // What stays is where it was in the step before.
    const auto place = [&](int i, const char* key) {
      const Scene& scene = *shown(i).scene;
      const Box& box = scene.layout.boxes[static_cast<std::size_t>(scene.picture.card_by_key(key))];
      return QPointF(box.x, box.y);
    };
    QCOMPARE(place(2, "d"), place(1, "d"));
    QCOMPARE(place(1, "d"), place(0, "d"));
    passes.show_rewrites(pass);
    QCOMPARE(passes.view()->history()->steps.size(), steps);
    passes.skip("rewrite_post_grad");
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(passes.view()->history()->steps[static_cast<std::size_t>(pass)].disabled);
    QVERIFY(bench.command_line().contains("disable_passes=rewrite_post_grad"));
    passes.move("share_common", -1);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(step_of("share_common") + 1, step_of("undo_split_cat"));
    passes.reset();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(step_of("share_common") - 1, step_of("undo_split_cat"));
    QVERIFY(config().disable_passes.empty() && config().pass_order.empty());
    set_config(before);
  }

  void every_rewrite_of_many_is_reached() {
    Workbench bench(tools());
    bench.window().show();
    constexpr int count = 260;
    std::string body = "n0: <f32[8][1]> = $mul.Tensor(x, 1)\n";
    for (int i = 1; i < count; ++i) body += fmt::format("n{}: <f32[8][1]> = $mul.Tensor(n{}, 1)\n", i, i - 1);
    body += fmt::format("s: <f32[8][1]> = $sin(n{})\nreturn (s,)", count - 1);
    bench.open(folder_.write("many.py", *testing::fx("x: <f32[8][1]>", body)));
    QVERIFY(wait_shown(bench));
    auto& passes = bench.get<PassesController>();
    passes.run();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && passes.view()->history(); }, 30000));
    const auto& before = passes.view()->history()->steps;
    const int pass =
        static_cast<int>(std::ranges::find(before, QString("rewrite_post_grad"), &PassStep::name) - before.begin());
    passes.show_rewrites(pass);
    passes.view()->go_to(pass + count);
    const auto last = [&]() -> const PassStep& {
      return passes.view()->history()->steps[static_cast<std::size_t>(pass + count)];
    };
    QVERIFY(last().rewrite);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && last().graph; }, 30000));
    QCOMPARE(last().name, QString("260  mul_one at n259"));
    QCOMPARE(last().graph->size(), std::size_t{3});
    QCOMPARE(last().diff->removed, 1);
    QVERIFY(bench.jobs().idle());
  }

  void overlays_are_offered_once_there_is_something_to_show() {
    Workbench bench(tools());
    bench.window().show();
    bench.open(folder_.write("overlays.py", *tests::joint_graph(3)));
    QVERIFY(wait_shown(bench));
    auto offered = [&](OverlayKind kind) { return bench.get<GraphController>().overlay_action(kind)->isEnabled(); };
    QVERIFY(offered(OverlayKind::None) && offered(OverlayKind::Bytes) && offered(OverlayKind::Module));
    for (OverlayKind kind : {OverlayKind::Error, OverlayKind::Time, OverlayKind::Kernel, OverlayKind::Pass}) {
      QVERIFY(!offered(kind));
      QVERIFY(bench.get<GraphController>().overlay_action(kind)->toolTip().contains("Graph >"));
    }
    QVERIFY(bench.get<GraphController>().show_overlay("time"));  // measures it first
    QVERIFY(QTest::qWaitFor([&] { return picture(bench)->overlay() == OverlayKind::Time; }, 30000));
    QVERIFY(offered(OverlayKind::Kernel) && !offered(OverlayKind::Pass));
    const NodeFacts& addmm = bench.current()->facts.at("addmm_1");
    QVERIFY(addmm.seconds > 0 && addmm.seconds < 1);
    QCOMPARE(addmm.kernel, std::string("library: addmm"));
    QVERIFY(!bench.current()->facts.at("gelu_1").kernel.empty());
    QVERIFY(bench.get<GraphController>().show_overlay("pass"));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(bench.get<PassesController>().view()->history());
    // Nothing is known of another document, so the overlay is switched off.
    bench.open(folder_.write("other.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    QVERIFY(!offered(OverlayKind::Time));
    QCOMPARE(picture(bench)->overlay(), OverlayKind::None);
    QVERIFY(!bench.get<GraphController>().show_overlay("no such thing"));
  }

  void the_budget_moves_the_cut_and_the_command_line() {
    Workbench bench(tools());
    bench.window().show();
    bench.open(folder_.write("budget.py", *tests::joint_graph(6)));
    QVERIFY(wait_shown(bench));
    BudgetSlider* slider = bench.get<GraphController>().bar()->budget();
    QVERIFY(slider->isVisible());
    QCOMPARE(slider->curve().size(), std::size_t{BudgetSlider::kSteps + 1});
    std::int64_t usual = bench.current()->cut->activation_bytes;
    QCOMPARE(slider->curve().back().activation_bytes, usual);
    slider->setValue(0);
    QVERIFY(
        QTest::qWaitFor([&] { return bench.jobs().idle() && bench.current()->cut->activation_bytes < usual; }, 30000));
    QCOMPARE(bench.current()->cut->activation_bytes, slider->curve().front().activation_bytes);
    QVERIFY(bench.command_line().contains("--memory-budget 0 "));
    slider->setValue(BudgetSlider::kSteps);
    QVERIFY(
        QTest::qWaitFor([&] { return bench.jobs().idle() && bench.current()->cut->activation_bytes == usual; }, 30000));
    QVERIFY(!bench.command_line().contains("--memory-budget"));
  }

  void the_budgets_of_a_large_graph_wait_until_they_are_wanted() {
    Workbench bench(tools());
    bench.window().show();
    bench.open(folder_.write("large.py", *tests::joint_graph(280)));
    QVERIFY(wait_shown(bench));
    BudgetSlider* slider = bench.get<GraphController>().bar()->budget();
    QVERIFY(slider->curve().empty());
    QEnterEvent entered(QPointF{}, QPointF{}, QPointF{});
    QCoreApplication::sendEvent(slider, &entered);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && !slider->curve().empty(); }, 60000));
  }

  void the_joint_graph_is_made_and_its_halves_stand_beside_each_other() {
    WorkbenchTools with_joint = tools();
    with_joint.joint = [](const Graph& graph, const ExportedProgram* program) {
      return aot(graph, program, {.snapshots = true});
    };
    Workbench bench(with_joint);
    bench.window().show();
    bench.open(QString(PARTITA_SOURCE_DIR) + "/resources/samples/mlp/program.pt2");
    QVERIFY(wait_shown(bench));
    QVERIFY(!bench.current()->cut);
    QVERIFY(!bench.get<GraphController>().bar()->budget()->isVisible());
    QString source = bench.current()->key;
    bench.get<AotController>().make_joint();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && bench.current()->cut; }, 30000));
    QCOMPARE(bench.current()->key, source + "/joint");
    for (const char* made : {"/joint_before_passes", "/forward", "/backward"})
      QVERIFY(bench.documents().contains(source + made));
    bench.get<AotController>().show();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(bench.window().page(), static_cast<QWidget*>(bench.get<AotController>().view()));
    QVERIFY(bench.get<GraphController>().bar()->budget()->isVisible());
    const CutSummary& cut = *bench.current()->cut;
    QCOMPARE(bench.get<AotController>().view()->saved()->model()->rowCount(),
             static_cast<int>(cut.saved.size() + cut.recomputed.size()));
    auto halves = bench.get<AotController>().view()->findChildren<GraphView*>();
    QCOMPARE(halves.size(), 2);
    for (GraphView* half : halves) QVERIFY(half->scene() && !half->scene()->picture.cards.empty());
    QString saved;
    for (const SavedValue& value : cut.saved)
      if (saved.isEmpty() && !value.is_input) saved = QString::fromStdString(value.name);
    bench.selection().select_node(saved);  // computed by the forward, read by the backward
    for (GraphView* half : halves) {       // the card that stands for it, which may be its only reader
      const Scene& scene = *half->scene();
      const int card = scene.card_of(*scene.picture.graph->find(saved.toStdString()));
      QVERIFY(card >= 0 && scene.picture.cards[card].node);
      QCOMPARE(half->selected_node(), QString::fromStdString(scene.picture.cards[card].node->name()));
    }
    QVERIFY(bench.command_line().startsWith("partita aot "));
  }

  void texts_fill_the_middle_alone() {
    Workbench bench(tools());
    bench.window().show();
    QString path = folder_.filePath("notes.log");
    std::ofstream(path.toStdString())
        << "V1121 07:58:09.531000 7 a.py:1] {\"dynamo_guards\": {}, \"frame_id\": 0, \"frame_compile_id\": 0, "
           "\"has_payload\": \"\"}\n\tfirst guard\n\tsecond guard\n";
    bench.open(path);
    QVERIFY(wait_shown(bench));
    QCOMPARE(bench.window().page(), static_cast<QWidget*>(texts(bench)));
    auto* beside = bench.window().findChild<QDockWidget*>("code");
    QVERIFY(!beside->isVisible());  // it would be empty
    QVERIFY(texts(bench)->document()->text().contains("second guard"));
    QVERIFY(!code(bench)->document());
    bench.open(folder_.write("after.py", *tests::joint_graph(1)));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && picture(bench)->scene(); }, 30000));
    QTRY_VERIFY(beside->isVisible());
    QCOMPARE(bench.window().page(), static_cast<QWidget*>(picture(bench)));
    QVERIFY(code(bench)->document());
  }

  void graphviz_draws_and_says_why_it_cannot() {
    WorkbenchTools with_dot = tools();
    with_dot.graphviz = [](const Graph& graph, const std::string& format, const Progress&) -> Result<std::string> {
      if (format != "svg") return unsupported("graphviz.missing", "cannot start dot; install graphviz");
      return "<svg>" + graph.name + "</svg>";
    };
    Workbench bench(with_dot);
    bench.window().show();
    bench.open(folder_.write("dot.py", *tests::joint_graph(1)));
    QVERIFY(wait_shown(bench));
    bench.get<GraphController>().export_graphviz(folder_.filePath("dot.svg"));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(QFile::exists(folder_.filePath("dot.svg")));
    bench.get<GraphController>().export_graphviz(folder_.filePath("dot.pdf"));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(!QFile::exists(folder_.filePath("dot.pdf")));
    bool said = false;
    for (QLabel* label : bench.window().findChildren<QLabel*>())
      said = said || (label->objectName() == "error" && label->text().contains("install graphviz"));
    QVERIFY(said);
  }

  void a_file_that_cannot_be_read_shows_its_error() {
    Workbench bench(tools());
    bench.window().show();
    QString path = folder_.filePath("broken.py");
    std::ofstream(path.toStdString())
        << "class GraphModule(torch.nn.Module):\n    def forward(self, x):\n        y = (\n";
    bench.open(path);
    bench.open(folder_.filePath("missing.py"));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    bool said = false;
    for (QLabel* label : bench.window().findChildren<QLabel*>())
      said = said || (label->objectName() == "error" && !label->text().isEmpty());
    QVERIFY(said);
  }

  void pictures_export_data() {
    QTest::addColumn<QString>("format");
    QTest::addColumn<QByteArray>("magic");
    QTest::newRow("svg") << "svg" << QByteArray("<?xml");
    QTest::newRow("png") << "png" << QByteArray("\x89PNG");
    QTest::newRow("pdf") << "pdf" << QByteArray("%PDF");
  }
  void pictures_export() {
    QFETCH(QString, format);
    QFETCH(QByteArray, magic);
    auto scene = make_scene(tests::joint_graph(3), {});
    auto bytes = export_scene(*scene, format, Theme::light());
    QVERIFY(bool(bytes));
    QVERIFY(bytes->startsWith(magic));
    QVERIFY(bytes->size() > 2000);
    QVERIFY(!export_scene(*scene, "gif", Theme::light()));
  }

  void nothing_blocks_while_a_big_graph_opens() {
    Workbench bench(tools());
    bench.window().resize(1400, 900);
    bench.window().show();
    auto corpus = partita::testing::corpus();
    QString path = corpus.empty() ? folder_.write("big.py", *tests::joint_graph(200))
                                  : QString::fromStdString((corpus / "big/gpt12/joint.py").string());
    QVERIFY(QTest::qWaitForWindowExposed(&bench.window()));
    QTest::qWait(50);
    Watchdog watchdog;
    QElapsedTimer clock;
    clock.start();
    bench.open(path);
    QVERIFY(wait_shown(bench, 60000));
    qInfo("first picture after %lld ms; longest turn of the event loop %lld ms", clock.elapsed(), watchdog.longest_ms);
    QVERIFY2(watchdog.longest_ms < 100, qPrintable(QString("blocked for %1 ms").arg(watchdog.longest_ms)));
  }

  void themes_switch_live() {
    Workbench bench(tools());
    bench.window().show();
    bench.window().set_theme_choice(ThemeChoice::Dark);
    QVERIFY(bench.window().theme().dark);
    QVERIFY(bench.window().grab().toImage().pixelColor(700, 300).lightness() < 60);
    bench.window().set_theme_choice(ThemeChoice::Light);
    QVERIFY(bench.window().grab().toImage().pixelColor(700, 300).lightness() > 200);
  }
};

QTEST_MAIN(TestWorkbench)
#include "test_workbench.moc"
