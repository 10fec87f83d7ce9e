// Drives the window as a user does, on samples of the repo and on graphs made here.
#include <QDockWidget>
#include <QEnterEvent>
#include <QLabel>
#include <QTest>
#include <fstream>

#include "app/window_tools.h"
#include "tests/support/corpus.h"
#include "tests/support/fx.h"
#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/aot/aot_controller.h"
#include "views/code/code_controller.h"
#include "views/graph/graph_controller.h"
#include "views/history/history_controller.h"
#include "views/passes/passes_controller.h"
#include "views/picture/picture_export.h"
#include "views/run/run_controller.h"
#include "views/saved/saved_controller.h"
#include "views/window/window_session.h"

using namespace partita;
using namespace partita::views;
using namespace partita::tests;

class TestWorkbench : public QObject {
  Q_OBJECT

  TestFolder folder_;

 private Q_SLOTS:
  void initTestCase() { folder_.keep_settings_here(); }

  void a_file_opens_and_one_selection_is_everywhere() {
    Session bench(tools());
    bench.window().show();
    QVERIFY(open_unfolded(bench, folder_.write("joint.py", *tests::joint_graph(4))));
    QVERIFY(picture(bench)->scene()->picture.joint);
    QVERIFY(bench.documents().current()->cut);

    bench.selection().select_node("gelu_2");
    QCOMPARE(picture(bench)->selected_node(), QString("gelu_2"));
    QCOMPARE(code(bench)->current_line(), bench.documents().current()->code->line_of("gelu_2"));

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
    Session bench(tools());
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
    Session bench(tools());
    bench.window().show();
    QVERIFY(open_unfolded(bench, folder_.write("pins.py", *tests::joint_graph(4))));
    auto saved = [&](const std::string& name) {
      for (const SavedValue& value : bench.documents().current()->cut->saved)
        if (value.name == name) return true;
      return false;
    };
    std::string kept;
    for (const SavedValue& value : bench.documents().current()->cut->saved)
      if (kept.empty() && !value.is_input) kept = value.name;
    QVERIFY(!kept.empty());
    bench.selection().select_node(QString::fromStdString(kept));
    std::int64_t before = bench.documents().current()->cut->activation_bytes;
    QTest::keyClick(picture(bench), Qt::Key_R);
    QVERIFY(wait_shown(bench));
    QVERIFY(!saved(kept));
    QCOMPARE(bench.documents().current()->bytes_before.value_or(-1), before);
    QVERIFY(bench.command_line().startsWith("partita aot "));
    QVERIFY(bench.command_line().contains(QString::fromStdString("--recompute " + kept)));
    QTest::keyClick(picture(bench), Qt::Key_U);
    QVERIFY(wait_shown(bench));
    QVERIFY(saved(kept));
    QCOMPARE(bench.documents().current()->cut->activation_bytes, before);
  }

  void pins_are_set_wherever_the_value_is_shown() {
    Session bench(tools());
    bench.window().show();
    QVERIFY(open_unfolded(bench, folder_.write("everywhere.py", *tests::joint_graph(4))));
    std::vector<QString> kept;
    for (const SavedValue& value : bench.documents().current()->cut->saved)
      if (!value.is_input) kept.push_back(QString::fromStdString(value.name));
    QVERIFY(kept.size() >= 3);
    bench.drawing().fold_all(true);
    QVERIFY(wait_shown(bench));
    bench.views().show("saved");
    QString said;
    connect(&bench.window(), &MainWindow::logged, &bench, [&](const QString& line) { said = line; });
    // In a folded card, in the table, in the code: the chosen value is one.
    QWidget* const places[] = {picture(bench), bench.views().get<SavedController>().view()->view(), code(bench)};
    for (std::size_t i = 0; i < 3; ++i) {
      bench.selection().select_node(kept[i]);
      QCOMPARE(bench.views().get<SavedController>().view()->current_node(), kept[i]);
      places[i]->setFocus();
      QTest::keyClick(places[i], Qt::Key_R);
      QVERIFY(wait_shown(bench));
      QVERIFY2(bench.documents().current()->pins.contains(kept[i].toStdString()), qPrintable(kept[i]));
    }
    // What is not possible is said.
    const std::pair<const char*, const char*> refused[] = {
        {"gelu_backward", "backward"}, {"primals_1", "input"}, {"", "Choose a value"}};
    for (const auto& [node, why] : refused) {
      const Pins before = bench.documents().current()->pins;
      bench.selection().select_node(node);
      QTest::keyClick(places[0], Qt::Key_S);
      QVERIFY2(said.contains(why), qPrintable(said));
      QVERIFY(bench.documents().current()->pins == before);
    }
    bench.selection().select_node(kept[0]);
    QTest::keyClick(places[0], Qt::Key_R);
    QVERIFY2(said.contains("already"), qPrintable(said));
  }

  void a_module_folds_and_unfolds() {
    Session bench(tools());
    bench.window().show();
    auto graph = tests::joint_graph(3);
    QVERIFY(open_unfolded(bench, folder_.write("fold.py", *graph)));
    std::size_t cards = picture(bench)->scene()->picture.cards.size();
    QVERIFY(!picture(bench)->scene()->picture.frames.empty());  // source lines: FX text has no module paths
    QString key = QString::fromStdString(picture(bench)->scene()->picture.frames.front().key);
    bench.drawing().fold(key);
    QVERIFY(wait_shown(bench));
    QVERIFY(picture(bench)->scene()->picture.cards.size() < cards);
    bench.drawing().fold(key);
    QVERIFY(wait_shown(bench));
    QCOMPARE(picture(bench)->scene()->picture.cards.size(), cards);
  }

  /// The passes view shows the graph that a compiler's passes begin with.
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
    Session bench(with_store);
    bench.window().show();
    QVERIFY(bench.views().show("history"));
    TablePanel* past = bench.views().get<HistoryController>().view()->past();
    QVERIFY(QTest::qWaitFor([&] { return past->model()->rowCount() == 3; }, 30000));
    const auto& beside = bench.views().get<HistoryController>().view()->beside()->model()->rows();
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
    Session bench(*given);
    bench.window().show();
    bench.documents().open(QString(PARTITA_SOURCE_DIR) + "/resources/samples/mlp/program.pt2");
    QVERIFY(wait_shown(bench));
    RunView* view = bench.views().get<RunController>().view();
    view->choose("print_compile", true);
    QVERIFY(!view->wants_folder());
    bench.views().get<RunController>().run(view->request());
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
    bench.views().get<RunController>().run(view->request());
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY2(view->summary().endsWith(" of it compiling") && view->details().contains("\nplan: "),
             qPrintable(view->details()));
    QVERIFY2(view->minimumSizeHint().width() < 700, qPrintable(QString::number(view->minimumSizeHint().width())));
    view->choose("graph_dumper_aot", true);
    QVERIFY(view->wants_folder());
    view->set_folder(folder_.path());
    bench.views().get<RunController>().run(view->request());
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(QDir(folder_.path()).exists("graph"));
  }

  void overlays_are_offered_once_there_is_something_to_show() {
    Session bench(tools());
    bench.window().show();
    bench.documents().open(folder_.write("overlays.py", *tests::joint_graph(3)));
    QVERIFY(wait_shown(bench));
    auto offered = [&](OverlayKind kind) {
      return bench.views().get<GraphController>().overlay_action(kind)->isEnabled();
    };
    QVERIFY(offered(OverlayKind::None) && offered(OverlayKind::Bytes) && offered(OverlayKind::Module));
    for (OverlayKind kind : {OverlayKind::Error, OverlayKind::Time, OverlayKind::Kernel, OverlayKind::Pass}) {
      QVERIFY(!offered(kind));
      QVERIFY(bench.views().get<GraphController>().overlay_action(kind)->toolTip().contains("Graph >"));
    }
    QVERIFY(bench.views().get<GraphController>().show_overlay("time"));  // measures it first
    QVERIFY(QTest::qWaitFor([&] { return picture(bench)->overlay() == OverlayKind::Time; }, 30000));
    QVERIFY(offered(OverlayKind::Kernel) && !offered(OverlayKind::Pass));
    const NodeFacts& addmm = bench.documents().current()->facts.at("addmm_1");
    QVERIFY(addmm.seconds > 0 && addmm.seconds < 1);
    QCOMPARE(addmm.kernel, std::string("library: addmm"));
    QVERIFY(!bench.documents().current()->facts.at("gelu_1").kernel.empty());
    QVERIFY(bench.views().get<GraphController>().show_overlay("pass"));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(bench.views().get<PassesController>().view()->history());
    // Nothing is known of another document, so the overlay is switched off.
    bench.documents().open(folder_.write("other.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    QVERIFY(!offered(OverlayKind::Time));
    QCOMPARE(picture(bench)->overlay(), OverlayKind::None);
    QVERIFY(!bench.views().get<GraphController>().show_overlay("no such thing"));
  }

  void the_budget_moves_the_cut_and_the_command_line() {
    Session bench(tools());
    bench.window().show();
    bench.documents().open(folder_.write("budget.py", *tests::joint_graph(6)));
    QVERIFY(wait_shown(bench));
    BudgetSlider* slider = bench.views().get<GraphController>().bar()->budget();
    QVERIFY(slider->isVisible());
    QCOMPARE(slider->curve().size(), std::size_t{BudgetSlider::kSteps + 1});
    std::int64_t usual = bench.documents().current()->cut->activation_bytes;
    QCOMPARE(slider->curve().back().activation_bytes, usual);
    slider->setValue(0);
    QVERIFY(QTest::qWaitFor(
        [&] { return bench.jobs().idle() && bench.documents().current()->cut->activation_bytes < usual; }, 30000));
    QCOMPARE(bench.documents().current()->cut->activation_bytes, slider->curve().front().activation_bytes);
    QVERIFY(bench.command_line().contains("--memory-budget 0 "));
    slider->setValue(BudgetSlider::kSteps);
    QVERIFY(QTest::qWaitFor(
        [&] { return bench.jobs().idle() && bench.documents().current()->cut->activation_bytes == usual; }, 30000));
    QVERIFY(!bench.command_line().contains("--memory-budget"));
  }

  void the_budgets_of_a_large_graph_wait_until_they_are_wanted() {
    Session bench(tools());
    bench.window().show();
    bench.documents().open(folder_.write("large.py", *tests::joint_graph(280)));
    QVERIFY(wait_shown(bench));
    BudgetSlider* slider = bench.views().get<GraphController>().bar()->budget();
    QVERIFY(slider->curve().empty());
    QEnterEvent entered(QPointF{}, QPointF{}, QPointF{});
    QCoreApplication::sendEvent(slider, &entered);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && !slider->curve().empty(); }, 60000));
  }

  void the_joint_graph_is_made_and_its_halves_stand_beside_each_other() {
    WorkbenchTools with_joint = tools();
    with_joint.joint = [](const Graph& graph, const Artefact& artefact) {
      return aot(graph, artefact.program.get(), {.snapshots = true});
    };
    Session bench(with_joint);
    bench.window().show();
    bench.documents().open(QString(PARTITA_SOURCE_DIR) + "/resources/samples/mlp/program.pt2");
    QVERIFY(wait_shown(bench));
    QVERIFY(!bench.documents().current()->cut);
    QVERIFY(!bench.views().get<GraphController>().bar()->budget()->isVisible());
    QString source = bench.documents().current()->key;
    bench.views().get<AotController>().make_joint();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && bench.documents().current()->cut; }, 30000));
    QCOMPARE(bench.documents().current()->key, source + "/joint");
    for (const char* made : {"/joint_before_passes", "/forward", "/backward"})
      QVERIFY(bench.documents().all().contains(source + made));
    bench.views().get<AotController>().show();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(bench.window().page(), static_cast<QWidget*>(bench.views().get<AotController>().view()));
    QVERIFY(bench.views().get<GraphController>().bar()->budget()->isVisible());
    const CutSummary& cut = *bench.documents().current()->cut;
    QCOMPARE(bench.views().get<AotController>().view()->saved()->model()->rowCount(),
             static_cast<int>(cut.saved.size() + cut.recomputed.size()));
    auto halves = bench.views().get<AotController>().view()->findChildren<GraphView*>();
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
    Session bench(tools());
    bench.window().show();
    QString path = folder_.filePath("notes.log");
    std::ofstream(path.toStdString())
        << "V1121 07:58:09.531000 7 a.py:1] {\"dynamo_guards\": {}, \"frame_id\": 0, \"frame_compile_id\": 0, "
           "\"has_payload\": \"\"}\n\tfirst guard\n\tsecond guard\n";
    bench.documents().open(path);
    QVERIFY(wait_shown(bench));
    QCOMPARE(bench.window().page(), static_cast<QWidget*>(texts(bench)));
    auto* beside = bench.window().findChild<QDockWidget*>("code");
    QVERIFY(!beside->isVisible());  // it would be empty
    QVERIFY(texts(bench)->document()->text().contains("second guard"));
    QVERIFY(!code(bench)->document());
    bench.documents().open(folder_.write("after.py", *tests::joint_graph(1)));
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
    Session bench(with_dot);
    bench.window().show();
    bench.documents().open(folder_.write("dot.py", *tests::joint_graph(1)));
    QVERIFY(wait_shown(bench));
    bench.views().get<GraphController>().export_graphviz(folder_.filePath("dot.svg"));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(QFile::exists(folder_.filePath("dot.svg")));
    bench.views().get<GraphController>().export_graphviz(folder_.filePath("dot.pdf"));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(!QFile::exists(folder_.filePath("dot.pdf")));
    QVERIFY2(shown_errors(bench).contains("install graphviz"), qPrintable(shown_errors(bench)));
  }

  void a_file_that_cannot_be_read_shows_its_error() {
    Session bench(tools());
    bench.window().show();
    QString path = folder_.filePath("broken.py");
    std::ofstream(path.toStdString())
        << "class GraphModule(torch.nn.Module):\n    def forward(self, x):\n        y = (\n";
    bench.documents().open(path);
    bench.documents().open(folder_.filePath("missing.py"));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(!shown_errors(bench).isEmpty());
    // What is no graph can still be read.
    QVERIFY(bench.documents().current() && bench.documents().current()->path == path);
    QCOMPARE(bench.window().page(), texts(bench));
    QVERIFY(texts(bench)->document()->text().contains("def forward"));
  }

  void a_report_is_written_from_the_window() {
    auto given = program_tools({}, PARTITA_BINARY);
    QVERIFY(given);
    Session bench(*std::move(given));
    bench.window().show();
    bench.documents().open(PARTITA_SOURCE_DIR "/resources/samples/mlp/program.pt2");
    QVERIFY(wait_shown(bench));
    for (const auto& [name, begins] : {std::pair("report.html", "<!DOCTYPE html>"), std::pair("report.pdf", "%PDF-")}) {
      const QString path = folder_.filePath(name);
      bench.views().get<GraphController>().write_report(path);
      QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 60000));
      QVERIFY2(shown_errors(bench).isEmpty(), qPrintable(shown_errors(bench)));
      std::ifstream file(path.toStdString());
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      QVERIFY2(text.starts_with(begins), name);
      QVERIFY(text.size() > 10'000);
    }
  }

  void a_picture_is_what_the_ending_of_its_file_says() {
    Session bench(tools());
    bench.window().show();
    bench.documents().open(folder_.write("ending.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    for (const auto& [name, begins] :
         {std::pair("p.svg", "<?xml"), std::pair("p.PNG", "\x89PNG"), std::pair("p.pdf", "%PDF-")}) {
      bench.views().get<GraphController>().write_picture(folder_.filePath(name));
      QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 60000));
      QFile file(folder_.filePath(name));
      QVERIFY2(file.open(QIODevice::ReadOnly) && file.readAll().startsWith(begins), name);
    }
    bench.views().get<GraphController>().write_picture(folder_.filePath("p.txt"));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 60000));
    QVERIFY2(shown_errors(bench).contains("svg, png and pdf"), qPrintable(shown_errors(bench)));
    QVERIFY(!QFile::exists(folder_.filePath("p.txt")));
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
    // A PNG whose letters could not be read is refused; the others have no pixels.
    Scene huge = *scene;
    huge.layout.bounds.h = 40000;
    const auto large = export_scene(huge, format, Theme::light());
    QCOMPARE(bool(large), format != "png");
    if (!large) QVERIFY(large.error().code == "export.size");
  }

  void what_saved_values_cost_is_that_of_the_call_behind_a_view() {
    const auto graph =
        testing::fx("x: <f32[4, 4][4, 1]>",
                    "m: <f32[4, 4][4, 1]> = $mm(x, x)\nv: <f32[4, 4][1, 4]> = $t(m)\nw: <f32[4, 4][1, 4]> = "
                    "$t(x)\nr: <f32[4, 4][4, 1]> = $relu(m)\nreturn (v, w, r)");
    CutSummary cut;
    for (const char* name : {"x", "m", "v", "w"}) cut.saved.push_back({name, 64, std::string(name) == "x", false, ""});
    cut.recomputed = {"r"};
    QStringList costs;
    for (const Row& row : saved_value_rows(cut, *graph, {})) costs << row.cells[3].text;
    QCOMPARE(costs, (QStringList{"kept by the caller", "matmul", "matmul, by m", "cheap: view of an input",
                                 "cheap: pointwise"}));
    // What is computed again keeps its place among the sizes.
    QCOMPARE(saved_value_rows(cut, *graph, {}).back().cells[1].number, 64.0);
  }

  void nothing_blocks_while_a_big_graph_opens() {
    Session bench(tools());
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
    bench.documents().open(path);
    QVERIFY(wait_shown(bench, 60000));
    qInfo("first picture after %lld ms; longest turn of the event loop %lld ms", clock.elapsed(),
          watchdog.longest_wall_ms);
    QVERIFY2(watchdog.blocked().isEmpty(), qPrintable(watchdog.blocked()));
  }

  void themes_switch_live() {
    Session bench(tools());
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
