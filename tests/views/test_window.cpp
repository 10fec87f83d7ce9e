// What the window shows first, whose it is, and how its space is used.
#include <QAbstractButton>
#include <QDialog>
#include <QDir>
#include <QDockWidget>
#include <QDropEvent>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QMimeData>
#include <QPushButton>
#include <QScreen>
#include <QScrollBar>
#include <QTabBar>
#include <QTableView>
#include <QTest>
#include <QTextBrowser>
#include <QToolBar>
#include <QToolButton>
#include <QTreeView>
#include <fstream>
#include <semaphore>

#include "app/window_tools.h"
#include "tests/support/corpus.h"
#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/aot/aot_controller.h"
#include "views/compare/compare_controller.h"
#include "views/config/config_view.h"
#include "views/inspector/inspector.h"
#include "views/minify/minify_controller.h"
#include "views/picture/sizes.h"
#include "views/tensor/values_controller.h"
#include "views/window/empty_page.h"

using namespace partita;
using namespace partita::views;
using namespace partita::tests;

class TestWindow : public QObject {
  Q_OBJECT

  TestFolder folder_;
  /// A joint graph whose layers come from four lines in the forward and seven in the backward.
  static std::shared_ptr<Graph> blocks(int layers) {
    auto graph = tests::joint_graph(layers);
    int line = 0, back = 0;
    for (Node* node : *graph) {
      if (!node->op()->is_call()) continue;
      auto origin = std::make_shared<Origin>();
      origin->file = "blocks.py";
      origin->line = node->origin ? 1 + line++ % 4 : 11 + back++ % 7;
      origin->function = "forward";
      origin->code = "x = x + gelu(linear(x))";
      node->origin = origin;
    }
    return graph;
  }
  static int cards_on_screen(const GraphView* view) {
    int shown = 0;
    for (const Box& box : view->scene()->layout.boxes)
      shown += QRectF(view->rect()).intersects({view->to_view({box.x, box.y}), QSizeF(box.w, box.h) * view->zoom()});
    return shown;
  }

 private Q_SLOTS:
  void initTestCase() { folder_.keep_settings_here(); }

  void the_first_view_is_never_empty() {
    namespace fs = std::filesystem;
    const fs::path corpus = partita::testing::corpus();
    if (corpus.empty()) QSKIP(partita::testing::no_corpus);
    // Else one of each kind, and large ones. All take minutes; QtTest wants QTEST_FUNCTION_TIMEOUT for that.
    const bool all = qEnvironmentVariableIsSet("PARTITA_EVERY_FILE");
    std::vector<fs::path> paths;
    if (all)
      for (const auto& entry : fs::recursive_directory_iterator(corpus)) paths.push_back(entry.path());
    else
      for (const char* file : {"models/swin/program.pt2", "models/lstm/graphs/joint.py", "big/gpt48/forward.py",
                               "big/swin30/joint.py", "models/gpt2/trace", "models/mlp/debug", "models/mlp/dumped",
                               "extra/symbolic/program.pt2", "logs/simple.log", "aot_log_sample.txt"})
        paths.push_back(corpus / file);
    int pictures = 0, texts = 0, refused = 0;
    QStringList empty;
    for (const fs::path& path : paths) {
      Session bench(tools());
      bench.window().resize(1024, 700);
      bench.window().show();
      bool ended = false, loaded = false;
      connect(&bench, &Session::failed, this, [&] { ended = true; });
      connect(&bench.documents(), &Documents::loaded, this, [&] { loaded = true; });
      connect(&bench.screen(), &Screen::shown, this, [&] { ended = true; });
      bench.documents().open(QString::fromStdString(path.string()));
      QVERIFY2(QTest::qWaitFor([&] { return ended; }, 60000), path.c_str());
      QApplication::sendPostedEvents();
      const Document* document = bench.documents().current();
      if (!loaded || !document || !document->code) {
        ++refused;  // an error says why
        if (!all) empty << QString::fromStdString(path.string()) + " is not shown";
      } else if (!document->graph) {
        ++texts;
        if (document->code->text().trimmed().isEmpty()) empty << document->key;
      } else {
        ++pictures;
        if (cards_on_screen(picture(bench)) == 0) empty << document->key;
      }
    }
    qInfo("%d pictures, %d texts, %d not opened; empty: %d", pictures, texts, refused, static_cast<int>(empty.size()));
    QVERIFY2(empty.isEmpty(), qPrintable(empty.join('\n')));
  }

  void forward_and_backward_open_whole_and_unfold_in_place() {
    for (const QSize size : {QSize(1440, 900), QSize(1024, 700)}) {
      Session bench(tools());
      bench.window().resize(size);
      bench.window().show();
      bench.documents().open(folder_.write("blocks.py", *blocks(16)));
      QVERIFY(wait_shown(bench));
      QVERIFY(bench.views().show("aot"));
      AotView* halves = bench.views().get<AotController>().view();
      QTRY_VERIFY(halves->pair());
      QVERIFY(qobject_cast<GraphView*>(bench.window().focusWidget()));
      const QTableView* saved = halves->saved()->view();
      QVERIFY(size.width() < 1440 || saved->columnViewportPosition(3) + 100 < saved->viewport()->width());
      for (GraphView* half : halves->findChildren<GraphView*>()) {
        QCOMPARE(half->cards_in_view().size(), half->scene()->picture.cards.size());
        QVERIFY2(half->zoom() > 0.5, qPrintable(QString::number(half->zoom())));
        const auto& cards = half->scene()->picture.cards;
        const auto folded = std::ranges::find_if(cards, [](const Card& card) { return !card.node; });
        QVERIFY(folded != cards.end());
        const Box& box = half->scene()->layout.boxes[static_cast<std::size_t>(folded - cards.begin())];
        const std::size_t before = cards.size();
        QTest::mouseDClick(half, Qt::LeftButton, {}, half->to_view({box.center_x(), box.center_y()}).toPoint());
        QTRY_VERIFY(half->scene()->picture.cards.size() > before);
      }
    }
  }

  /// PyTorch's forward and backward are shown as they are, with our cut of the joint graph beside them as another one.
  void the_cut_of_files_is_not_ours() {
    const auto joint = tests::joint_graph(4);
    const auto theirs = partition(*joint, {.memory_budget = 0}), ours = partition(*joint);
    QVERIFY(theirs && ours && theirs->activation_bytes < ours->activation_bytes);
    TestFolder step;
    step.write("joint.py", *joint);
    step.write("forward.py", *theirs->forward);
    const QString file = step.write("backward.py", *theirs->backward);
    Session bench(tools());
    bench.window().show();
    bench.documents().want("forward");
    bench.documents().open(QFileInfo(file).path());
    QVERIFY(wait_shown(bench));
    QVERIFY(bench.views().show("aot"));
    AotView* page = bench.views().get<AotController>().view();
    QTRY_VERIFY(page->pair());
    QVERIFY(page->pair()->theirs);
    QCOMPARE(page->pair()->cut->activation_bytes, theirs->activation_bytes);
    QCOMPARE(page->pair()->cut->saved.size(), theirs->saved.size());
    QVERIFY(page->pair()->told.contains("PyTorch") && page->pair()->told.contains("Ours"));
    QVERIFY(std::ranges::any_of(page->pair()->values, [](const CutDifference& d) { return !d.theirs && d.ours; }));
    const auto buttons = page->findChildren<QPushButton*>();
    const auto choice = std::ranges::find_if(buttons, [](const QPushButton* b) { return b->text() == "Our cut"; });
    QVERIFY(choice != buttons.end() && (*choice)->isVisible());
    (*choice)->click();
    QTRY_VERIFY(!page->pair()->theirs);
    QCOMPARE(page->pair()->cut->activation_bytes, ours->activation_bytes);
  }

  void all_is_in_reach_in_half_of_1440x900() {
    Session bench(tools());
    MainWindow& window = bench.window();
    window.resize(720, 450);
    window.show();
    bench.documents().open(folder_.write("small.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    QTest::qWait(1);
    QCOMPARE(window.size(), QSize(720, 450));
    QVERIFY(window.findChild<QLineEdit*>("search")->isVisible());
    const QRect all(QPoint(), window.size());
    for (const QWidget* part : window.findChildren<QWidget*>()) {
      if (!part->isVisible() || part->window() != &window) continue;
      const bool control = qobject_cast<const QAbstractButton*>(part) || qobject_cast<const QLineEdit*>(part);
      const QRect place(part->mapTo(&window, QPoint()), part->size());
      if (control) QVERIFY2(all.contains(place), qPrintable(part->accessibleName() + part->toolTip()));
      if (const auto* tabs = qobject_cast<const QTabBar*>(part))
        QVERIFY2(tabs->rect().contains(tabs->tabRect(tabs->count() - 1)), "the last tab");
    }
  }

  void the_first_picture_is_whole_and_readable() {
    for (const QSize size : {QSize(1440, 900), QSize(1024, 700)}) {
      Session bench(tools());
      bench.window().resize(size);
      bench.window().show();
      bench.documents().open(folder_.write("blocks.py", *blocks(16)));  // 213 nodes
      QVERIFY(wait_shown(bench));
      const GraphView* view = picture(bench);
      QCOMPARE(view->cards_in_view().size(), view->scene()->picture.cards.size());
      QVERIFY2(view->zoom() > 0.5, qPrintable(QString::number(view->zoom())));
      QVERIFY(view->scene()->picture.cards.size() > 4);
    }
  }

  void a_picture_that_nobody_moved_follows_its_room() {
    Session bench(tools());
    bench.window().resize(1440, 900);
    bench.window().show();
    bench.documents().open(folder_.write("blocks.py", *blocks(16)));
    QVERIFY(wait_shown(bench));
    GraphView* view = picture(bench);
    bench.window().open_bottom(true);
    QTest::qWait(1);
    QCOMPARE(view->cards_in_view().size(), view->scene()->picture.cards.size());
    view->zoom_by(2, view->rect().center());
    const double zoom = view->zoom();
    bench.window().open_bottom(false);
    QTest::qWait(1);
    QCOMPARE(view->zoom(), zoom);
  }

  void the_overview_of_a_large_graph_is_whole_and_readable() {
    const auto folder = partita::testing::corpus() / "big/gpt12";
    if (!std::filesystem::exists(folder)) QSKIP("no corpus");
    for (const char* file : {"joint.py", "forward.py", "backward.py"}) {
      Session bench(tools());
      bench.window().resize(1440, 900);
      bench.window().show();
      bench.documents().open(QString::fromStdString((folder / file).string()));
      QVERIFY(wait_shown(bench, 60000));
      const GraphView* view = picture(bench);
      QVERIFY2(view->cards_in_view().size() == view->scene()->picture.cards.size(), file);
      QVERIFY2(view->zoom() >= 0.8, qPrintable(file + QString(": %1").arg(view->zoom())));
    }
  }

  void halves_that_nobody_folded_stay_readable_while_the_budget_moves() {
    const auto joint = partita::testing::corpus() / "big/gpt12/joint.py";
    if (!std::filesystem::exists(joint)) QSKIP("no corpus");
    Session bench(tools());
    bench.window().resize(1440, 900);
    bench.window().show();
    bench.documents().open(QString::fromStdString(joint.string()));
    QVERIFY(wait_shown(bench, 60000));
    QVERIFY(bench.views().show("aot"));
    AotView* halves = bench.views().get<AotController>().view();
    QTRY_VERIFY_WITH_TIMEOUT(halves->pair(), 60000);
    const auto first = halves->pair();
    bench.views().get<GraphController>().bar()->budget()->setValue(BudgetSlider::kSteps / 2);
    QTRY_VERIFY_WITH_TIMEOUT(bench.jobs().idle() && halves->pair() != first, 60000);
    for (GraphView* half : halves->findChildren<GraphView*>())
      QCOMPARE(half->cards_in_view().size(), half->scene()->picture.cards.size());
  }

  void every_view_leaves_the_panels_their_room_in_a_small_window() {
    auto given = program_tools({}, PARTITA_BINARY);
    QVERIFY(bool(given));
    given->store_file.clear();
    Session bench(*given);
    bench.window().resize(1024, 700);
    bench.window().show();
    bench.documents().open(folder_.write("small.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    bench.views().get<CompareController>().view()->set_report({}, {}, "1 of 61 values differs", "gelu");
    MinifyView* minifier = bench.views().get<MinifyController>().view();
    bench.views().set_inputs("/somewhere/inputs_of_a_model_whose_name_is_as_long_as_names_of_models_are.safetensors");
    const auto panels = bench.window().findChildren<QDockWidget*>();
    const auto panel = [&](const char* name) { return bench.window().findChild<QDockWidget*>(name); };
    const auto all_have_room = [&](Controller& view) {
      bench.views().get<GraphController>().raise();
      view.raise();
      QTest::qWait(1);
      const QByteArray name = view.widget()->accessibleName().toUtf8();
      QVERIFY2(bench.window().width() == 1024, name + QByteArray::number(bench.window().width()));
      if (view.widget() == texts(bench)) return;  // without panels at the right
      QVERIFY2(panel("code")->width() >= 240 && panel("artefacts")->width() >= 150, name);
      for (const QDockWidget* a : panels)
        for (const QDockWidget* b : panels) QVERIFY2(a == b || !a->geometry().intersects(b->geometry()), name);
    };
    bench.views().each(all_have_room);
    // What a minification shows while it is in front.
    auto& minify = bench.views().get<MinifyController>();
    minify.raise();
    QTest::qWait(1);
    minifier->start();
    all_have_room(minify);
    minify::MinifyResult reduced;
    reduced.failure.what = "error";
    reduced.failure.op = "aten._scaled_dot_product_flash_attention_for_cpu_backward.default";
    minifier->finish(reduced,
                     {"none: it fails before any", "aten._scaled_dot_product_flash_attention_for_cpu.default"});
    minifier->set_saved("/somewhere/repro");
    QTest::qWait(1);
    all_have_room(minify);
  }

  void a_longer_place_moves_no_button() {
    Session bench(tools());
    MainWindow& window = bench.window();
    window.resize(1366, 730);
    window.show();
    const auto places = [&] {
      QTest::qWait(1);
      QList<QRect> all;
      for (const QToolButton* button : window.findChild<QToolBar*>("toolbar")->findChildren<QToolButton*>())
        if (button->isVisible()) all << button->geometry();
      return all;
    };
    window.set_breadcrumb("a.py");
    const QList<QRect> before = places();
    QVERIFY(before.size() > 8);
    window.set_breadcrumb(QString("a folder whose name is long / ").repeated(12));
    QCOMPARE(places(), before);
  }

  void menus_fit_into_a_small_window() {
    Session bench(tools());
    bench.window().show();
    for (const QMenu* menu : bench.window().findChildren<QMenu*>())
      QVERIFY2(menu->sizeHint().height() < 640, qPrintable(menu->title()));
    QCOMPARE(bench.window().menuBar()->findChild<QMenu*>("File")->actions().last()->text(), QString("Quit"));
    QStringList letters;  // that open a menu, with Alt
    for (const QAction* entry : bench.window().menuBar()->actions())
      letters << QKeySequence::mnemonic(entry->text()).toString();
    QVERIFY2(!letters.contains(QString()) && letters.removeDuplicates() == 0, qPrintable(letters.join(' ')));
  }

  void panels_give_way_when_the_window_shrinks() {
    Session bench(tools());
    bench.window().resize(1440, 900);
    bench.window().show();
    bench.documents().open(folder_.write("small.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    const auto code = [&] { return bench.window().findChild<QDockWidget*>("code")->width(); };
    const int before = code();
    bench.window().resize(1024, 700);
    QTest::qWait(1);
    QVERIFY2(code() >= 320 && code() <= before * 4 / 5, qPrintable(QString("%1 of %2").arg(code()).arg(before)));
  }

  void names_in_the_tree_come_before_kinds() {
    const auto log = partita::testing::corpus() / "models/gpt2/trace";
    if (!std::filesystem::exists(log)) QSKIP("no corpus");
    Session bench(tools());
    bench.window().resize(1440, 900);
    bench.window().show();
    bench.documents().open(QString::fromStdString(log.string()));
    QVERIFY(wait_shown(bench, 60000));
    auto* tree = bench.window().findChild<QDockWidget*>("artefacts")->findChild<QTreeView*>();
    const auto names = [&] { return static_cast<QAbstractItemView*>(tree)->sizeHintForColumn(0); };
    QTRY_VERIFY2(tree->columnWidth(0) >= names(),
                 qPrintable(QString("%1 of %2").arg(tree->columnWidth(0)).arg(names())));
    tree->collapse(tree->model()->index(0, 0));
    QTRY_VERIFY(!tree->isColumnHidden(1));
  }

  void an_exported_model_opens_at_its_layers() {
    const auto program = partita::testing::corpus() / "models/bert/program.pt2";
    if (!std::filesystem::exists(program)) QSKIP("no corpus");
    Session bench(tools());
    bench.window().resize(1440, 900);
    bench.window().show();
    bench.documents().open(QString::fromStdString(program.string()));
    QVERIFY(wait_shown(bench, 60000));
    const GraphView* view = picture(bench);
    const Scene& scene = *view->scene();
    QCOMPARE(view->cards_in_view().size(), scene.picture.cards.size());
    QVERIFY2(view->zoom() >= 0.8, qPrintable(QString::number(view->zoom())));
    // What stands in the two layers is seen, and every card is linked.
    QVERIFY(scene.picture.cards.size() > 10);
    for (std::size_t i = 0; i < scene.picture.cards.size(); ++i)
      QVERIFY2(!scene.links_from(static_cast<int>(i)).empty() || !scene.links_to(static_cast<int>(i)).empty(),
               scene.picture.cards[i].key.c_str());
  }

  void a_large_graph_opens_folded_and_unfolds_in_place() {
    Session bench(tools());
    bench.window().show();
    bench.documents().open(folder_.write("large.py", *blocks(120)));
    QVERIFY(wait_shown(bench));
    GraphView* view = picture(bench);
    const int stack = view->scene()->picture.card_by_key("frame:120 blocks#0");
    QVERIFY(stack >= 0);
    const Box box = view->scene()->layout.boxes[stack];
    const QPoint at = view->to_view({box.center_x(), box.center_y()}).toPoint();
    QTest::mouseDClick(view, Qt::LeftButton, {}, at);
    QVERIFY(wait_shown(bench));
    QVERIFY(view->scene()->picture.card_by_key("gelu") >= 0);
    const Box& first = view->scene()->layout.boxes[view->scene()->picture.card_by_key("t")];
    QVERIFY(std::abs(view->to_view({0, first.center_y()}).y() - at.y()) < 60);
    bench.drawing().fold_all(true);
    QVERIFY(QTest::qWaitFor([&] { return view->scene()->picture.card_by_key("gelu") < 0; }, 30000));
    QVERIFY(cards_on_screen(view) > 0);
  }

  void what_is_shown_belongs_to_the_graph_above_it() {
    WorkbenchTools with_slow = tools();
    with_slow.backends.push_back({"slow", [](const Progress& progress) -> CompileFn {
                                    return [&progress](const Graph&) -> Result<CompiledFn> {
                                      while (!progress.cancelled()) QThread::msleep(1);
                                      return stopped_on_request();
                                    };
                                  }});
    Session bench(with_slow);
    bench.window().show();
    auto& compare = bench.views().get<CompareController>();
    const auto& rows = compare.view()->table()->model()->rows();
    bench.documents().open(folder_.write("first.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    const QString first = bench.documents().current()->key;
    compare.compare({"interp", {"broken"}, true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    const std::size_t compared = rows.size();
    QVERIFY(compared > 0);
    compare.compare({"interp", {"slow"}, true, Tolerance{}, {}});
    bench.jobs().cancel_all();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(rows.size(), compared);  // a cancelled job leaves what was there
    QCOMPARE(compare.request_of(*bench.documents().current()).found, std::vector<std::string>{"broken"});
    for (QLabel* label : compare.view()->findChildren<QLabel*>()) QVERIFY(!label->text().contains("comparing"));
    bench.views().get<ValuesController>().look_at("gelu");
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(bench.window().page(), bench.views().get<ValuesController>().widget());
    bench.documents().open(folder_.write("second.py", *tests::joint_graph(3)));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && bench.documents().current()->key != first; }, 30000));
    QCOMPARE(rows.size(), std::size_t{0});
    compare.compare({"interp", {"slow"}, true, Tolerance{}, {}});
    bench.jobs().cancel_all();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(std::ranges::any_of(compare.view()->findChildren<QLabel*>(),
                                [](const QLabel* label) { return label->text() == "cancelled"; }));
    QCOMPARE(bench.window().page(), bench.views().get<GraphController>().widget());
    QVERIFY(!bench.views().get<ValuesController>().view()->pair());
    bench.screen().show(first);
    QCOMPARE(rows.size(), compared);
  }

  void no_button_moves_when_a_job_ends() {
    Session bench(tools());
    bench.window().resize(1440, 900);
    bench.window().show();
    bench.documents().open(QString::fromStdString((partita::testing::corpus() / "models/mlp/program.pt2").string()));
    QVERIFY(wait_shown(bench));
    auto places = [&] {
      QVector<QRect> out;
      for (auto* button : bench.window().findChildren<QToolBar*>("toolbar").at(0)->findChildren<QToolButton*>())
        if (button->isVisible()) out.append(button->geometry());
      return out;
    };
    QTRY_VERIFY(places().size() > 4 && bench.jobs().idle());
    const QVector<QRect> before = places();
    std::binary_semaphore end(0);
    bench.jobs().start<int>(
        "waits", "test", &bench,
        [&](const Progress&) -> Result<int> {
          end.acquire();
          return 0;
        },
        [](Result<int>) {});
    QTest::qWait(50);
    const QVector<QRect> during = places();
    end.release();
    QTRY_VERIFY(bench.jobs().idle());
    QCOMPARE(during, before);
  }

  /// It lies over the page, at the end where the mouse is not.
  void an_error_moves_nothing() {
    Session bench(tools());
    MainWindow& window = bench.window();
    window.resize(1440, 900);
    window.show();
    QTest::qWait(50);
    const QRect before = window.page()->geometry(), place(window.page()->mapToGlobal(QPoint()), window.page()->size());
    for (const bool below : {true, false}) {
      QCursor::setPos(place.center().x(), below ? place.top() + 20 : place.bottom() - 10);
      window.show_problem("x.py: cannot be read");
      auto* bar = window.findChild<QWidget*>("problemBar");
      QVERIFY(bar && bar->isVisible());
      QCOMPARE(window.page()->geometry(), before);
      QVERIFY2(!QRect(bar->mapToGlobal(QPoint()), bar->size()).contains(QCursor::pos()), below ? "below" : "above");
      QTest::keyClick(&window, Qt::Key_Escape);
      QVERIFY(!bar->isVisible());
    }
  }

  void every_panel_has_a_key() {
    auto given = program_tools({}, PARTITA_BINARY);
    QVERIFY(bool(given));
    given->store_file = folder_.filePath("keys.sqlite").toStdString();
    Session bench(*given);
    bench.window().show();
    bench.documents().open(folder_.write("keys.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    QStringList without;
    std::map<QString, int> keys;
    for (const QAction* action : bench.window().findChildren<QAction*>())
      if (!action->shortcut().isEmpty()) ++keys[action->shortcut().toString()];
    for (const auto& [key, times] : keys) QVERIFY2(times == 1, qPrintable(key));  // else neither is heard
    for (const ViewRow& row : view_rows()) {
      if (*row.title == '\0' || *row.key == '\0') continue;
      QVERIFY2(keys.contains(QKeySequence(row.key).toString()), row.name);
      Controller* view = nullptr;
      bench.views().each([&](Controller& c) {
        if (QString(c.widget()->accessibleName()).compare(row.title, Qt::CaseInsensitive) == 0) view = &c;
      });
      for (QAction* action : bench.window().findChildren<QAction*>())
        if (action->shortcut() == QKeySequence(row.key)) action->trigger();
      const QWidget* focus = bench.window().focusWidget();
      if (view) QVERIFY2(focus && (focus == view->widget() || view->widget()->isAncestorOf(focus)), row.name);
    }
  }

  void the_window_is_no_larger_than_the_screen() {
    Session bench(tools());
    MainWindow& window = bench.window();
    window.resize(4000, 3000);
    window.fit_screen();
    window.show();
    const QRect room = window.screen()->availableGeometry();
    QVERIFY(room.contains(window.frameGeometry()));
    for (const QSize laptop : {QSize(1366, 730), QSize(1280, 680)}) {  // 2560x1440 at 200 %, with frame and panel
      bench.views().each([&](Controller& view) {
        view.raise();
        QVERIFY2(
            window.minimumSizeHint().width() <= laptop.width() && window.minimumSizeHint().height() <= laptop.height(),
            qPrintable(view.widget()->accessibleName()));
      });
    }
  }

  void the_keyboard_begins_at_the_samples() {
    Session bench(tools());
    EmptyPage* page = bench.window().empty_page();
    page->set_content({{"first", "", "/a"}, {"second", "", "/b"}}, {});
    bench.window().show();
    QStringList buttons;
    const QWidget* at = page->focusProxy();
    for (int i = 0; at && i < 3; ++i, at = at->nextInFocusChain()) {
      while (!qobject_cast<const QAbstractButton*>(at)) at = at->nextInFocusChain();
      buttons << qobject_cast<const QAbstractButton*>(at)->text().trimmed();
    }
    QCOMPARE(buttons, (QStringList{"first", "second", "Copy"}));
    QCOMPARE(bench.window().focusWidget(), page->focusProxy());
    QString asked;
    connect(page, &EmptyPage::open_asked, page, [&](const QString& path) { asked = path; });
    QTest::keyClick(page->focusProxy(), Qt::Key_Return);
    QCOMPARE(asked, QString("/a"));
  }

  void the_configuration_marks_what_differs() {
    const auto changed = patched_config({{"threads", "2"}}, Config());
    const std::vector<Row> rows = views::config_rows(*changed);
    QCOMPARE(rows.size(), partita::config_rows().size());
    for (const Row& row : rows) {
      const bool is_threads = row.cells[0].text == "threads";
      QCOMPARE(row.cells[1].tone == Tone::Warn, is_threads);
      if (is_threads) QCOMPARE(row.cells[1].text, QString("2, by default 1"));
      if (is_threads) QVERIFY(row.cells[2].text.endsWith(". Decides code."));
    }
    Session bench(tools());
    QVERIFY(bench.views().show("config"));
    QVERIFY(!bench.window().page()->findChildren<QLineEdit*>().empty());            // it can be searched
    for (QTableView* table : bench.window().page()->findChildren<QTableView*>()) {  // and read wholly
      QCOMPARE(table->horizontalScrollBar()->maximum(), 0);
      for (int row = 0; row < table->model()->rowCount(); ++row)
        QVERIFY(table->rowHeight(row) >= table->sizeHintForIndex(table->model()->index(row, 2)).height());
    }
    bench.documents().open(folder_.write("configured.py", *tests::joint_graph(3)));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && bench.documents().current(); }, 30000));
    const ConfigScope scope(*patched_config({{"fuse", "false"}}, Config()));
    QVERIFY2(bench.command_line().endsWith(" --config fuse=false"), qPrintable(bench.command_line()));
  }

  void pages_are_closed_and_the_panel_below_opens_when_it_is_needed() {
    Session bench(tools());
    bench.window().show();
    bench.documents().open(folder_.write("pages.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    QWidget* below = bench.views().get<CompareController>().widget();
    QVERIFY(!bench.views().get<CompareController>().on_screen());
    bench.views().get<CompareController>().raise();
    QVERIFY(QTest::qWaitFor([&] { return below->height() > 60; }, 5000));
    QVERIFY(bench.views().show("coverage"));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 60000));
    QTest::keyClick(&bench.window(), Qt::Key_Escape);
    QCOMPARE(bench.window().page(), bench.views().get<GraphController>().widget());
    QTest::keyClick(&bench.window(), Qt::Key_Question, Qt::ShiftModifier);
    auto* keys = bench.window().findChild<QDialog*>("keys");
    QVERIFY(keys && keys->findChild<QTextBrowser*>()->toPlainText().contains("Run and compare"));
    keys->close();
    // These move the picture, and are no menu's.
    for (const Qt::Key arrow : {Qt::Key_Left, Qt::Key_Right, Qt::Key_Up, Qt::Key_Down}) {
      const QPointF before = picture(bench)->to_view({0, 0});
      picture(bench)->setFocus();
      QTest::keyClick(picture(bench), arrow, Qt::ShiftModifier);
      QVERIFY(picture(bench)->to_view({0, 0}) != before);
    }
    for (const Qt::Key tab : {Qt::Key_Tab, Qt::Key_Backtab}) {
      picture(bench)->setFocus();
      QTest::keyClick(picture(bench), tab, Qt::ControlModifier);
      QVERIFY(bench.window().focusWidget() != picture(bench));
    }
    // No node is chosen: the graph itself is told about.
    QVERIFY(
        bench.window().findChild<Inspector*>()->findChild<QTextBrowser*>()->toPlainText().contains("largest saved"));
    TablePanel* saved = bench.window().findChild<TablePanel*>("saved");
    QVERIFY(saved);
    QCOMPARE(saved->model()->rowCount(), static_cast<int>(bench.documents().current()->cut->saved.size() +
                                                          bench.documents().current()->cut->recomputed.size()));
  }

  void sizes_of_symbols_are_given_once() {
    const QString path = folder_.filePath("symbols.py");
    std::ofstream(path.toStdString()) << R"py(class GraphModule(torch.nn.Module):
    def forward(self, s0: "Sym(s0)", x: "f32[s0, 64][64, 1]cpu"):
        exp: "f32[s0, 64][64, 1]cpu" = torch.ops.aten.exp.default(x)
        return (exp,)
)py";
    auto size = [](Session& bench) {
      const Graph& graph = *bench.documents().current()->graph;
      return size_text(graph.find("exp")->meta, graph.shapes.get());
    };
    Session bench(tools());
    bench.window().show();
    bench.documents().open(path);
    QVERIFY(wait_shown(bench));
    QCOMPARE(size(bench), QString("256*s0 B"));
    bench.views().get<GraphController>().set_hints({{"s0", 8}});
    QVERIFY(wait_shown(bench));
    QCOMPARE(size(bench), QString("2.00 KiB"));
    Session later(tools());
    later.window().show();
    later.documents().open(path);
    QVERIFY(wait_shown(later));
    QCOMPARE(size(later), QString("2.00 KiB"));
  }

  void files_that_are_dropped_are_opened() {
    Session bench(tools());
    bench.window().show();
    const QString path = folder_.write("dropped.py", *tests::joint_graph(1));
    QMimeData urls, words;
    urls.setUrls({QUrl::fromLocalFile(path)});
    words.setText(path);
    const auto entered = [&](const QMimeData& what) {
      QDragEnterEvent event({10, 10}, Qt::CopyAction, &what, Qt::LeftButton, Qt::NoModifier);
      event.ignore();
      QCoreApplication::sendEvent(&bench.window(), &event);
      return event.isAccepted();
    };
    QVERIFY(!entered(words));
    QVERIFY(entered(urls));
    QDropEvent drop({10, 10}, Qt::CopyAction, &urls, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&bench.window(), &drop);
    QVERIFY(wait_shown(bench));
    QCOMPARE(bench.documents().current()->path, path);
  }

  void files_are_told_apart_and_closed() {
    Session bench(tools());
    bench.window().show();
    QDir(folder_.path()).mkpath("one");
    QDir(folder_.path()).mkpath("two");
    const QString one = folder_.write("one/graph.py", *tests::joint_graph(1)),
                  two = folder_.write("two/graph.py", *tests::joint_graph(2));
    bench.documents().open(one);
    QVERIFY(wait_shown(bench));
    QVERIFY(bench.window().windowTitle().startsWith("one/graph.py"));
    const QString first = bench.documents().current()->key;
    bench.documents().open(two);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && bench.documents().current()->key != first; }, 30000));
    bench.documents().close_file(two);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(bench.documents().current()->key, first);
    QCOMPARE(bench.documents().tree().rowCount(), 1);
    for (const char* folder : {"left/same", "right/same"}) {  // folder and name are equal
      QDir(folder_.path()).mkpath(folder);
      const QString path = folder_.write(QString("%1/graph.py").arg(folder), *tests::joint_graph(1));
      bench.documents().open(path);
      QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && bench.documents().current()->path == path; }, 30000));
    }
    const auto titles = [&] {
      QStringList found;
      for (int row = 1; row < bench.documents().tree().rowCount(); ++row)
        found << bench.documents().tree().index(row, 0).data().toString();
      return found;
    };
    QCOMPARE(titles(), (QStringList{"left/same/graph.py", "right/same/graph.py"}));
    QVERIFY(bench.window().windowTitle().startsWith("right/same/graph.py"));
    bench.documents().close_file(folder_.filePath("left/same/graph.py"));
    QCOMPARE(titles(), (QStringList{"same/graph.py"}));
    bench.documents().close_file(folder_.filePath("right/same/graph.py"));
    bench.documents().close_file(one);
    QCOMPARE(bench.documents().current(), nullptr);
    QCOMPARE(bench.window().page(), static_cast<QWidget*>(bench.window().empty_page()));
    for (const char* bad : {"bad_a.py", "bad_b.py"}) {
      std::ofstream(folder_.filePath(bad).toStdString()) << "class GraphModule(\n";
      bench.documents().open(folder_.filePath(bad));
    }
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    const QString said = shown_errors(bench);
    QVERIFY2(said.contains("bad_a.py") && said.contains("bad_b.py"), qPrintable(said));
  }

  void a_failed_compilation_opens_on_its_error() {
    Session bench(tools());
    bench.window().show();
    QString path = folder_.filePath("failed.log");
    std::ofstream log(path.toStdString());
    for (const char* name : {"torch_version", "dynamo_error"})
      log << "V1121 07:58:09.531000 7 a.py:1] {\"artifact\": {\"name\": \"" << name
          << "\", \"encoding\": \"string\"}, \"frame_id\": 0, \"frame_compile_id\": 0, \"has_payload\": \"\"}\n\tthe "
             "text of "
          << name << "\n";
    log.close();
    bench.documents().open(path);
    QVERIFY(wait_shown(bench));
    QVERIFY2(texts(bench)->document()->text().contains("the text of dynamo_error"),
             qPrintable(texts(bench)->document()->text()));
  }
};

QTEST_MAIN(TestWindow)
#include "test_window.moc"
