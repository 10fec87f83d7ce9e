// What the window keeps of a user's work: inputs, pins and their undo, notes, the way through selections, jobs,
// layouts.
#include <QAccessible>
#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QDockWidget>
#include <QHeaderView>
#include <QHelpEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QSettings>
#include <QSlider>
#include <QTableView>
#include <QTest>
#include <QTextBrowser>
#include <QTextDocument>
#include <QToolTip>
#include <QTreeView>
#include <fstream>
#include <set>
#include <sstream>

#include "app/window_tools.h"
#include "core/ir/print.h"
#include "tests/support/fx.h"
#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/aot/aot_controller.h"
#include "views/compare/compare_controller.h"
#include "views/diff/diff_controller.h"
#include "views/graph/graph_controller.h"
#include "views/inspector/inspector.h"
#include "views/minify/minify_controller.h"
#include "views/notes/notes_view.h"

using namespace partita;
using namespace partita::views;
using namespace partita::tests;

class TestSession : public QObject {
  Q_OBJECT

  TestFolder folder_;
  const QString sample_ = PARTITA_SOURCE_DIR "/resources/samples/mlp/program.pt2";

 private Q_SLOTS:
  void initTestCase() { folder_.keep_settings_here(); }

  void the_joint_graph_of_an_archive_keeps_its_inputs() {
    auto given = program_tools({}, PARTITA_BINARY);
    QVERIFY(given);
    Session bench(*std::move(given));
    bench.window().show();
    bench.documents().open(sample_);
    QVERIFY(wait_shown(bench));
    const QString io = bench.views().inputs();
    QVERIFY(io.endsWith("io.safetensors"));
    const std::shared_ptr<const ExportedProgram> program = bench.documents().current()->artefact.program;
    bench.views().get<AotController>().make_joint();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && bench.documents().current()->cut; }, 30000));
    for (const QString& path : {io, QString()}) {
      auto copy = bench.documents().current()->graph->clone();
      const auto values = bench.tools().inputs(*copy, bench.documents().current()->artefact, path);
      QVERIFY2(values, values ? "" : values.error().line().c_str());
      const std::vector<Node*> inputs = copy->placeholders();
      const auto of_loss = std::ranges::find(inputs, "tangents_1", &Node::name) - inputs.begin();
      const auto* weight = values->front().get<Tensor>();
      const auto* tangent = values->at(static_cast<std::size_t>(of_loss)).get<Tensor>();
      QCOMPARE(weight->item_as_double(0), program->tensor_of(program->inputs[0].name)->item_as_double(0));
      QCOMPARE(tangent->item_as_double(0), 1.0);
    }
    QCOMPARE(bench.views().inputs(), io);
    QVERIFY(std::ranges::any_of(account_of(*bench.documents().current()).rows, [](const NodeAccount::Row& row) {
      return row.label == "wrapper" && row.html.contains("AOTDispatchAutograd");
    }));
    QVERIFY2(bench.window().windowTitle().contains("mlp/program.pt2  ›  exported program  ›  joint, made here"),
             qPrintable(bench.window().windowTitle()));
  }

  void titles_tell_ranks_and_compilations_apart() {
    QDir(folder_.path()).mkpath("ranks");
    for (const char* rank : {"0", "1"}) {
      std::ofstream log(
          folder_.filePath(QString("ranks/dedicated_log_torch_trace_rank_%1_x.log").arg(rank)).toStdString());
      for (const char* frame : {"0", "1"}) {
        log << "V1121 07:58:09.531000 7 a.py:1] {\"dynamo_output_graph\": {}, \"frame_id\": " << frame
            << ", \"frame_compile_id\": 0, \"rank\": " << rank << ", \"has_payload\": \"\"}\n";
        std::istringstream lines(print(*tests::joint_graph(1)));
        for (std::string line; std::getline(lines, line);) log << "\t" << line << "\n";
      }
    }
    Session bench(tools());
    bench.window().show();
    const QString folder = folder_.filePath("ranks");
    bench.documents().open(folder);
    QVERIFY(wait_shown(bench));
    std::set<QString> titles, groups;
    for (const auto& [key, document] : bench.documents().all()) {
      bench.screen().show(key);
      QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
      titles.insert(bench.window().windowTitle());
    }
    QCOMPARE(titles.size(), std::size_t{4});
    QVERIFY2(titles.begin()->endsWith("/ranks  ›  rank 0 x  ›  0/0  ›  dynamo_output_graph - Partita"),
             qPrintable(*titles.begin()));
    const QModelIndex file = bench.documents().tree().index(0, 0, {});
    for (int row = 0; row < bench.documents().tree().rowCount(file); ++row) {
      const QModelIndex rank = bench.documents().tree().index(row, 0, file);
      for (int below = 0; below < bench.documents().tree().rowCount(rank); ++below)
        groups.insert(rank.data().toString() + " › " +
                      bench.documents().tree().index(below, 0, rank).data().toString());
    }
    QCOMPARE(groups, (std::set<QString>{"rank 0 x › 0/0", "rank 0 x › 1/0", "rank 1 x › 0/0", "rank 1 x › 1/0"}));
    // The filter keeps what has all words in it or above it.
    auto* filter = bench.window().findChild<QLineEdit*>("artefactFilter");
    auto* tree = bench.window().findChild<QTreeView*>("artefacts");
    filter->setText("rank 1 0/0");
    const auto shown_ranks = [&] { return tree->model()->rowCount(tree->model()->index(0, 0)); };
    QCOMPARE(shown_ranks(), 1);
    const QModelIndex kept = tree->model()->index(0, 0, tree->model()->index(0, 0));
    QCOMPARE(kept.data().toString(), "rank 1 x");
    QCOMPARE(tree->model()->rowCount(kept), 1);
    filter->clear();
    QCOMPARE(shown_ranks(), 2);
    // A log by itself, and what is made of a graph, say the compilation too.
    bench.documents().open(folder_.filePath("ranks/dedicated_log_torch_trace_rank_1_x.log"));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY2(bench.window().windowTitle().contains("ranks/rank_1_x.log  ›  "),
             qPrintable(bench.window().windowTitle()));
    QVERIFY(bench.window().windowTitle().contains("/0  ›  dynamo_output_graph"));
  }

  void many_ranks_are_grouped_by_what_they_have() {
    Diff found;
    DiffRow row{DiffAspect::Operator, "0/0", "operator", {}, {}};
    for (const char* text : {"gelu", "gelu", "relu", "gelu", "relu", "relu"}) {
      found.runs.push_back({QString("rank %1").arg(found.runs.size()).toStdString(), "", {}});
      row.cells.push_back({text});
    }
    found.rows.push_back(row);
    std::vector<const DiffRow*> shown;
    QCOMPARE(diff_columns(found), (QStringList{"About", "In", "What", "As the first", "Other 1", "Graphs", "Line"}));
    const std::vector<Row> rows = diff_rows(found, true, shown);
    QCOMPARE(rows[0].cells.size(), std::size_t{7});
    QCOMPARE(rows[0].cells[3].text, QString("rank 0, rank 1, rank 3:  gelu"));
    QCOMPARE(rows[0].cells[4].text, QString("rank 2, rank 4, rank 5:  relu"));
  }

  void a_difference_leads_to_its_node_in_either_graph() {
    const QString first = folder_.write("first.py", *tests::joint_graph(2));
    std::string changed = print(*tests::joint_graph(2));
    changed.replace(changed.find("aten.gelu.default"), 17, "aten.relu.default");
    const QString second = folder_.filePath("second.py");
    std::ofstream(second.toStdString()) << changed;
    Session bench(tools());
    bench.window().show();
    for (const QString& path : {first, second}) {
      bench.documents().open(path);
      QVERIFY(wait_shown(bench));
    }
    auto& controller = bench.views().get<DiffController>();
    controller.show();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    TablePanel* table = controller.view()->table();
    QCOMPARE(table->model()->columns().size(), 7);
    const std::vector<Row>& rows = table->model()->rows();
    const auto changed_node = std::ranges::find_if(rows, [](const Row& r) { return r.cells[2].text == "operator"; });
    QVERIFY(changed_node != rows.end());
    QVERIFY2(changed_node->cells[3].text.contains("aten.gelu.default") &&
                 changed_node->cells[4].text.contains("aten.relu.default"),
             qPrintable(changed_node->cells[3].text + " and " + changed_node->cells[4].text));
    const int row = static_cast<int>(changed_node - rows.begin());
    for (const auto& [column, path] : {std::pair(3, first), std::pair(4, second)}) {
      const QModelIndex cell = table->view()->model()->index(row, column);
      table->view()->setCurrentIndex(cell);
      Q_EMIT table->view()->clicked(cell);
      QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
      QCOMPARE(bench.documents().current()->path, path);
      QCOMPARE(bench.selection().spot().node, changed_node->cells[column].text.section(':', 0, 0));
    }
  }

  void pins_are_undone_and_redone() {
    Session bench(tools());
    bench.window().show();
    QVERIFY(open_unfolded(bench, folder_.write("undo.py", *tests::joint_graph(4))));
    std::vector<std::string> kept;
    for (const SavedValue& value : bench.documents().current()->cut->saved)
      if (!value.is_input) kept.push_back(value.name);
    const std::int64_t bytes = bench.documents().current()->cut->activation_bytes;
    const auto key = [&](int key, Qt::KeyboardModifiers modifiers = {}) {
      QTest::keyClick(picture(bench), static_cast<Qt::Key>(key), modifiers);
      QVERIFY(wait_shown(bench));
    };
    for (int i : {0, 1}) {
      bench.selection().select_node(QString::fromStdString(kept[static_cast<std::size_t>(i)]));
      key(Qt::Key_R);
    }
    const Pins both = bench.documents().current()->pins;
    QCOMPARE(both.size(), std::size_t{2});
    key(Qt::Key_Z, Qt::ControlModifier);
    QCOMPARE(bench.documents().current()->pins.size(), std::size_t{1});
    QVERIFY(bench.documents().current()->pins.contains(kept[0]));
    key(Qt::Key_Z, Qt::ControlModifier);
    QCOMPARE(bench.documents().current()->cut->activation_bytes, bytes);
    picture(bench)->zoom_by(0.5, {});
    const double zoom = picture(bench)->zoom();
    key(Qt::Key_Z, Qt::ControlModifier);  // nothing is left to undo, and this is not Z
    QVERIFY(bench.documents().current()->pins.empty());
    QCOMPARE(picture(bench)->zoom(), zoom);
    for (int i = 0; i < 2; ++i) key(Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    QVERIFY(bench.documents().current()->pins == both);
    key(Qt::Key_Z, Qt::ControlModifier);
    bench.selection().select_node(QString::fromStdString(kept[1]));
    key(Qt::Key_S);  // another way on: what was undone is gone
    key(Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    QVERIFY(bench.documents().current()->pins.at(kept[1]) == Pin::Save);
    // A pin that is not possible leaves what was there.
    const Pins before = bench.documents().current()->pins;
    bench.pins().pin("gelu_backward", Pin::Recompute);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(bench.documents().current()->pins == before);
  }

  void notes_are_kept_with_the_file_and_found() {
    WorkbenchTools with_store = tools();
    with_store.store_file = folder_.filePath("notes.sqlite").toStdString();
    const QString path = folder_.write("noted.py", *tests::joint_graph(3));
    {
      Session bench(with_store);
      bench.window().show();
      bench.documents().open(path);
      QVERIFY(wait_shown(bench));
      bench.selection().select_node("gelu_1");
      QTest::keyClick(picture(bench), Qt::Key_D, Qt::ControlModifier | Qt::ShiftModifier);
      auto* notes = bench.window().findChild<NotesView*>("notes");
      QVERIFY(notes->field()->isEnabled());
      QTest::keyClicks(notes->field(), "why is this saved?");
      QTest::keyClick(notes->field(), Qt::Key_Return);
      bench.selection().select_node("addmm");
      QTest::keyClick(picture(bench), Qt::Key_D, Qt::ControlModifier);
      bench.selection().select_node("add");
      for (int i = 0; i < 2; ++i) QTest::keyClick(picture(bench), Qt::Key_D, Qt::ControlModifier);  // and off again
      QCOMPARE(notes->model()->rowCount(), 2);
      QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    }
    Session bench(with_store);
    bench.window().show();
    bench.documents().open(path);
    QVERIFY(wait_shown(bench));
    const auto& rows = bench.window().findChild<NotesView*>("notes")->model()->rows();
    QVERIFY(QTest::qWaitFor([&] { return rows.size() == 2; }, 30000));
    QCOMPARE(rows[0].node, QString("addmm"));
    QCOMPARE(rows[1].cells[1].text, QString("why is this saved?"));
    bench.selection().select_node("gelu_1");
    QVERIFY(bench.window().findChild<Inspector*>()->findChild<QTextBrowser*>()->toPlainText().contains(
        "why is this saved?"));
    auto* search = bench.window().findChild<QLineEdit*>("search");
    QTest::keyClicks(search, "is this");
    QVERIFY(std::ranges::any_of(bench.window().findChildren<QLabel*>(),
                                [](const QLabel* label) { return label->text().contains("in 1 note"); }));
  }

  void modules_of_the_chosen_node_are_named_and_fold() {
    Session bench(tools());
    bench.window().show();
    QVERIFY(open_unfolded(bench, folder_.write("modules.py", *tests::joint_graph(3))));
    bench.selection().select_node("gelu_1");
    const std::vector<Crumb> path = picture(bench)->module_path();
    QVERIFY(!path.empty());
    auto* bar = bench.views().get<GraphController>().bar();
    QVERIFY(std::ranges::any_of(bar->findChildren<QLabel*>(), [&](const QLabel* label) {
      return label->text().contains(path.back().label.toHtmlEscaped());
    }));
    Q_EMIT bar->module_chosen(path.back().frame_key);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(picture(bench)->scene()->picture.card_by_key("gelu_1") < 0);
    QVERIFY(!picture(bench)->module_path().empty() && picture(bench)->module_path().back().folded);
    // The other panes speak of the module, too.
    const QString told = bench.window().findChild<Inspector*>()->findChild<QTextBrowser*>()->toPlainText();
    QVERIFY2(told.simplified().startsWith(path.back().label.simplified()) && told.contains("Enter shows") &&
                 told.contains("1 matmul"),
             qPrintable(told));
    Q_EMIT bar->module_chosen(path.back().frame_key);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(picture(bench)->scene()->picture.card_by_key("gelu_1") >= 0);
  }

  void a_long_way_of_modules_keeps_its_end() {
    PictureBar bar;
    bar.resize(640, 40);
    bar.show();
    std::vector<Crumb> path;
    for (int i = 0; i < 30; ++i) path.push_back({QString("key%1").arg(i), QString("module_%1").arg(i), false});
    bar.set_modules(path);
    const QList<QLabel*> labels = bar.findChildren<QLabel*>();
    const auto modules =
        std::ranges::find_if(labels, [](const QLabel* label) { return label->text().contains("href"); });
    QVERIFY(modules != labels.end());
    QVERIFY((*modules)->text().startsWith("… › ") && (*modules)->text().contains("module_29"));
    QVERIFY(!(*modules)->text().contains(">module_0<"));
    QVERIFY((*modules)->toolTip().contains("module_0"));
    bar.set_modules({path.back()});
    QVERIFY(!(*modules)->text().contains("…"));
    // A name that is too long alone is cut with dots, too.
    bar.set_modules({path.front(), {"key", QString("a_long_name_").repeated(20), true}});
    QTextDocument shown;
    shown.setHtml((*modules)->text());
    QVERIFY2(shown.toPlainText().count("…") == 2, qPrintable(shown.toPlainText()));
    QVERIFY((*modules)->fontMetrics().horizontalAdvance(shown.toPlainText()) <= (*modules)->width());
  }

  void back_and_forward_go_through_selections() {
    Session bench(tools());
    bench.window().show();
    QVERIFY(open_unfolded(bench, folder_.write("way.py", *tests::joint_graph(3))));
    for (const char* node : {"gelu", "gelu_1", "gelu_2"}) bench.selection().select_node(node);
    const auto after = [&](Qt::Key key) {
      QTest::keyClick(picture(bench), key, Qt::AltModifier);
      return bench.selection().spot().node;
    };
    QCOMPARE(after(Qt::Key_Left), QString("gelu_1"));
    QCOMPARE(after(Qt::Key_Left), QString("gelu"));
    QCOMPARE(after(Qt::Key_Right), QString("gelu_1"));
    QCOMPARE(picture(bench)->selected_node(), QString("gelu_1"));
  }

  void layouts_are_kept_by_kind_of_work() {
    QSettings().remove("layouts");
    const auto settle = [] { QTest::qWait(50); };
    {
      Session bench(tools());
      MainWindow& window = bench.window();
      window.restore_layout();
      window.show();
      bench.documents().open(folder_.write("layout.py", *tests::joint_graph(2)));
      QVERIFY(wait_shown(bench));
      auto* tree = window.findChild<QDockWidget*>("artefacts");
      auto* node = window.findChild<QDockWidget*>("node");
      QVERIFY(tree->isVisible() && node->isVisible());
      bench.views().show("compare");
      QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
      tree->hide();  // for comparing
      settle();
      window.open_bottom(false);  // back to reading
      settle();
      QVERIFY(tree->isVisible());
      QVERIFY(bench.views().show("coverage"));
      node->hide();
      settle();
      window.close_page();
      settle();
      QVERIFY(tree->isVisible() && node->isVisible());
      bench.views().show("compare");
      settle();
      QVERIFY(!tree->isVisible() && node->isVisible());
      QVERIFY(bench.views().get<CompareController>().widget()->height() > 60);
      window.close();
    }
    Session bench(tools());
    MainWindow& window = bench.window();
    window.restore_layout();
    window.show();
    bench.documents().open(folder_.filePath("layout.py"));
    QVERIFY(wait_shown(bench));
    auto* tree = window.findChild<QDockWidget*>("artefacts");
    auto* node = window.findChild<QDockWidget*>("node");
    QVERIFY(bench.views().show("coverage"));
    settle();
    QVERIFY(tree->isVisible() && !node->isVisible());
    window.reset_layout();
    settle();
    QVERIFY(tree->isVisible() && node->isVisible());
    window.close_page();
    QVERIFY(bench.views().show("coverage"));
    settle();
    QVERIFY(node->isVisible());
  }

  void controls_have_names_for_screen_readers() {
    WorkbenchTools all = tools();
    all.store_file = folder_.filePath("names.sqlite").toStdString();
    Session bench(all);
    bench.window().show();
    QStringList nameless;
    int named = 0;
    for (QWidget* widget : bench.window().findChildren<QWidget*>()) {
      if (widget->objectName().startsWith("qt_") || qobject_cast<QHeaderView*>(widget)) continue;
      const bool control =
          qobject_cast<QLineEdit*>(widget) || qobject_cast<QPushButton*>(widget) || qobject_cast<QCheckBox*>(widget) ||
          qobject_cast<QComboBox*>(widget) || qobject_cast<QSlider*>(widget) || qobject_cast<QTableView*>(widget) ||
          qobject_cast<QTreeView*>(widget) || qobject_cast<GraphView*>(widget) || qobject_cast<CodeView*>(widget);
      if (!control) continue;
      QAccessibleInterface* read = QAccessible::queryAccessibleInterface(widget);
      if (read && !read->text(QAccessible::Name).isEmpty())
        ++named;
      else
        nameless << widget->metaObject()->className() + QString(" in ") + widget->parent()->metaObject()->className();
    }
    QVERIFY2(nameless.isEmpty(), qPrintable(nameless.join('\n')));
    QVERIFY(named > 30);
  }

  void three_samples_open_with_a_click() {
    qputenv("XDG_CACHE_HOME", folder_.filePath("cache").toUtf8());  // they are in the program, and are written there
    QStringList samples;
    for (int i = 0; i < 3; ++i) {
      QSettings().remove("recent");
      Session bench(tools());
      bench.window().show();
      QList<QPushButton*> buttons;
      for (QPushButton* button : bench.window().empty_page()->findChildren<QPushButton*>())
        if (button->text() != "Copy") buttons << button;
      QCOMPARE(buttons.size(), 3);
      samples << buttons[i]->text().section(' ', 0, 0);
      buttons[i]->click();
      QVERIFY(wait_shown(bench));
      QVERIFY2(bench.documents().current()->scene, qPrintable(samples.back()));
    }
    QCOMPARE(samples, (QStringList{"gpt2", "mlp", "training"}));
  }

  void a_file_is_found_as_it_was_left() {
    const QString path = folder_.write("left.py", *tests::joint_graph(4));
    std::string pinned, folded;
    {
      Session bench(tools());
      bench.window().show();
      QVERIFY(open_unfolded(bench, path));
      for (const SavedValue& value : bench.documents().current()->cut->saved)
        if (!value.is_input) pinned = value.name;
      bench.pins().pin(QString::fromStdString(pinned), Pin::Recompute);
      QVERIFY(wait_shown(bench));
      folded = picture(bench)->scene()->picture.frames.front().key;
      bench.drawing().fold(QString::fromStdString(folded));
      QVERIFY(wait_shown(bench));
      bench.selection().select_node("gelu_backward");
      bench.window().close();
    }
    Session bench(tools());
    bench.window().show();
    bench.documents().open(path);
    QVERIFY(wait_shown(bench));
    QVERIFY(bench.documents().current()->pins == (Pins{{pinned, Pin::Recompute}}));
    QVERIFY(std::ranges::find(bench.documents().current()->cut->recomputed, pinned) !=
            bench.documents().current()->cut->recomputed.end());
    QVERIFY(picture(bench)->scene()->picture.card_by_key("frame:" + folded) >= 0);
    QCOMPARE(bench.selection().spot().node, QString("gelu_backward"));
    // Another graph of that name has no such node: it is drawn without the pin.
    bench.documents().close_file(path);
    folder_.write("left.py", *tests::joint_graph(1));
    bench.documents().open(path);
    QVERIFY(QTest::qWaitFor(
        [&] { return bench.jobs().idle() && bench.documents().current() && bench.documents().current()->code; },
        30000));
    QVERIFY(bench.documents().current()->scene);
    QVERIFY(bench.documents().current()->pins.empty() || bench.documents().current()->graph->find(pinned));
  }

  void the_node_stands_beside_the_code_in_a_wide_window() {
    for (const int width : {1440, 1920}) {
      Session bench(tools());
      bench.window().resize(width, 1000);
      bench.window().show();
      bench.documents().open(folder_.write("wide.py", *tests::joint_graph(2)));
      QVERIFY(wait_shown(bench));
      QTest::qWait(50);
      const QRect code = bench.window().findChild<QDockWidget*>("code")->geometry();
      const QRect node = bench.window().findChild<QDockWidget*>("node")->geometry();
      QCOMPARE(node.left() > code.right(), width > 1800);
      QCOMPARE(node.top() > code.bottom(), width < 1800);
      QVERIFY(picture(bench)->width() >= code.width());
    }
  }

  void code_folds_by_module() {
    Session bench(tools());
    bench.window().show();
    QVERIFY(open_unfolded(bench, folder_.write("folds.py", *tests::joint_graph(6))));
    CodeView* view = code(bench);
    const std::vector<CodeSection>& sections = view->document()->sections();
    QVERIFY(sections.size() > 2);
    for (std::size_t i = 1; i < sections.size(); ++i) QVERIFY(sections[i - 1].end <= sections[i].begin);
    const int line = view->document()->line_of("gelu_2");
    const auto section =
        std::ranges::find_if(sections, [&](const CodeSection& s) { return s.begin <= line && line < s.end; });
    QVERIFY(section != sections.end());
    bench.selection().select_node("gelu_2");
    QTest::keyClick(view, Qt::Key_Return);
    QVERIFY(view->is_hidden(line) && !view->is_hidden(section->begin));
    QCOMPARE(view->current_line(), section->begin);
    QTest::keyClick(view, Qt::Key_Down);  // to the next line that is shown
    QCOMPARE(view->current_line(), section->end);
    QTest::keyClick(view, Qt::Key_Up);
    QCOMPARE(view->current_line(), section->begin);
    bench.selection().select_node("addmm_2");  // what is chosen is seen
    QVERIFY(!view->is_hidden(line));
    QCOMPARE(view->current_line(), view->document()->line_of("addmm_2"));
    view->fold_all(true);
    QVERIFY(view->is_hidden(line));
    view->set_search("gelu_2:");
    QVERIFY(view->find_next());
    QCOMPARE(view->current_line(), line);
    view->fold_all(false);
    view->verticalScrollBar()->setValue(section->begin);
    QCOMPARE(view->first_visible_line(), section->begin);
    QTest::mouseClick(view->viewport(), Qt::LeftButton, {}, QPoint(10, 4));
    QVERIFY(view->is_hidden(line));
    bench.selection().select_node("gelu_2");
    view->fold_all(true);
    QCOMPARE(view->chosen_line(), section->begin);
  }

  /// A click on a line that defines nothing is where the keys go on, and what is chosen stays so in all panes.
  void a_comment_is_not_chosen() {
    Session bench(tools());
    bench.window().show();
    QVERIFY(open_unfolded(bench, folder_.write("comments.py", *tests::joint_graph(6))));
    CodeView* view = code(bench);
    bench.selection().select_node("gelu_2");
    const int chosen = view->document()->line_of("gelu_2");
    QCOMPARE(view->chosen_line(), chosen);
    view->verticalScrollBar()->setValue(0);
    QVERIFY(view->document()->node_at(0).isEmpty());
    QTest::mouseClick(view->viewport(), Qt::LeftButton, {}, QPoint(view->viewport()->width() - 20, 4));
    QCOMPARE(view->current_line(), 0);
    QCOMPARE(view->chosen_line(), chosen);
    QCOMPARE(bench.selection().spot().node, QString("gelu_2"));
    QTest::keyClick(view, Qt::Key_End);
    bench.selection().select_node("addmm_2");
    QCOMPARE(view->chosen_line(), view->document()->line_of("addmm_2"));
  }

  void a_minification_is_not_shown_for_another_graph() {
    WorkbenchTools with_minifier = tools();
    with_minifier.minifier = [](const Artefact&, const MinifyRequest&) -> Result<MinifyTool> {
      MinifyTool tool;
      tool.oracle = minify::accuracy_oracle("broken", interpreter(0.25), {}, 1);
      return tool;
    };
    Session bench(with_minifier);
    bench.window().show();
    bench.documents().open(folder_.write("first.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    bench.views().get<MinifyController>().minify({"accuracy", "broken", {}});
    MinifyView* view = bench.views().get<MinifyController>().view();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && !view->running(); }, 60000));
    const auto page_names = [&] {
      QStringList names;
      for (const QLabel* label : bench.window().findChildren<QLabel*>("heading")) names << label->text();
      return names.join('\n');
    };
    QVERIFY2(page_names().contains("first.py"), qPrintable(page_names()));
    QVERIFY(view->tried()->model()->rowCount() > 0);
    const QString first = bench.documents().current()->key;
    bench.documents().open(folder_.write("second.py", *tests::joint_graph(3)));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && bench.documents().current()->key != first; }, 30000));
    QTest::keyClick(&bench.window(), Qt::Key_M, Qt::ControlModifier);
    QCOMPARE(bench.window().page(), static_cast<QWidget*>(view));
    QCOMPARE(view->tried()->model()->rowCount(), 0);
    QVERIFY(view->headline().isEmpty() && !page_names().contains("first.py"));
    QVERIFY(!view->graph()->scene());
    QVERIFY(QTest::qWaitFor([&] { return view->graph()->scene() != nullptr; }, 30000));
    QCOMPARE(view->graph()->scene()->picture.graph, bench.documents().current()->graph);
  }

  void what_was_asked_for_is_answered_where_the_user_looks() {
    Session bench(tools());
    bench.window().show();
    QVERIFY(open_unfolded(bench, folder_.write("asked.py", *tests::joint_graph(3))));
    // Timing the nodes colours the picture by time.
    QTest::keyClick(picture(bench), Qt::Key_T, Qt::ControlModifier);
    QVERIFY(QTest::qWaitFor([&] { return picture(bench)->overlay() == OverlayKind::Time; }, 30000));
    // A pin that has no effect says so.
    std::string unused;
    for (const Node* node : *bench.documents().current()->graph) {
      const auto is_it = [&](const SavedValue& value) { return value.name == node->name(); };
      if (node->op()->is_call() && !bench.documents().current()->cut->backward.contains(node->name()) &&
          std::ranges::none_of(bench.documents().current()->cut->saved, is_it) &&
          std::ranges::find(bench.documents().current()->cut->recomputed, node->name()) ==
              bench.documents().current()->cut->recomputed.end())
        unused = node->name();
    }
    QVERIFY(!unused.empty());
    bench.pins().pin(QString::fromStdString(unused), Pin::Recompute);
    QVERIFY(wait_shown(bench));
    QVERIFY(std::ranges::any_of(bench.window().findChildren<QLabel*>(),
                                [](const QLabel* label) { return label->text().contains("changes nothing"); }));
    bench.pins().undo();
    QVERIFY(wait_shown(bench));
    // A ribbon of the cut says what it is.
    const Scene& scene = *picture(bench)->scene();
    int saved = -1;
    for (std::size_t i = 0; i < scene.picture.cards.size() && saved < 0; ++i)
      if (scene.crosses(static_cast<int>(i))) saved = static_cast<int>(i);
    QVERIFY(saved >= 0);
    picture(bench)->fit(true);
    const double middle = (scene.layout.cut_left + scene.layout.cut_right) / 2;
    const QPoint at = picture(bench)->to_view({middle, scene.cut_y[static_cast<std::size_t>(saved)]}).toPoint();
    QHelpEvent help(QEvent::ToolTip, at, picture(bench)->mapToGlobal(at));
    QCoreApplication::sendEvent(picture(bench), &help);
    QVERIFY2(QToolTip::text().contains(" B") || QToolTip::text().contains("iB"), qPrintable(QToolTip::text()));
    // The copied command makes up inputs as the window did.
    bench.views().get<CompareController>().compare({"interp", {"broken"}, true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY2(bench.command_line().contains("--random-weights 0"), qPrintable(bench.command_line()));
  }

  void operations_are_numbers_or_expressions() {
    const auto graph = testing::fx("x: <f32[s0, 8][8, 1]>, w: <f32[8, 4][4, 1]>",
                                   "y: <f32[s0, 4][4, 1]> = $mm(x, w)\nz: <f32[s0, 4][4, 1]> = $sin(y)\n"
                                   "n = $native_layer_norm(z, [4], None, None, 1e-05)\n"
                                   "a: <f32[s0, 4][4, 1]> = n[0]\nm: <f32[s0, 1][1, 1]> = n[1]\nreturn (a, m)");
    const auto row = [&](const char* node) {
      for (const NodeAccount::Row& r : account_of(Document(), *graph->find(node), nullptr).rows)
        if (r.label == "operations") return r.html;
      return QString();
    };
    QCOMPARE(row("y"), QString("64*s0"));
    QCOMPARE(row("z"), QString("4*s0"));
    QCOMPARE(row("n"), QString("5*s0"));  // of its results that are read
    QCOMPARE(row("x"), QString());
    graph->shapes->set_hint("s0", 1000);
    QCOMPARE(row("y"), QString("64 k"));
  }

  void the_user_s_line_comes_before_the_library_s() {
    Session bench(tools());
    bench.window().show();
    bench.documents().open(sample_);
    QVERIFY(wait_shown(bench));
    const Graph& graph = *bench.documents().current()->graph;
    QStringList from, library;
    for (const Node* node : graph)
      for (const NodeAccount::Row& row : account_of(*bench.documents().current(), *node, nullptr).rows) {
        if (row.label == "from") from << row.html;
        if (row.label == "in the library") library << row.html;
      }
    QVERIFY(!from.isEmpty() && from.size() > library.size());
    for (const QString& line : from) QVERIFY2(line.startsWith("zoo.py:"), qPrintable(line));
    QVERIFY(!library.isEmpty());
    for (const QString& line : library) QVERIFY2(!line.startsWith("zoo.py:"), qPrintable(line));
  }
};

QTEST_MAIN(TestSession)
#include "test_session.moc"
