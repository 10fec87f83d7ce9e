// Minifies in the window, as a user does: with tries in this process, and in child processes that crash.
#include <QPushButton>

#include "app/window_tools.h"
#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/compare/compare_controller.h"
#include "views/history/history_controller.h"
#include "views/minify/minify_controller.h"

using namespace partita;
using namespace partita::views;
using namespace partita::tests;

class TestMinifying : public QObject {
  Q_OBJECT

  TestFolder folder_;
  static bool wait_minified(Session& bench) {
    return QTest::qWaitFor(
        [&] { return bench.jobs().idle() && !bench.views().get<MinifyController>().view()->running(); }, 60000);
  }
  static QPushButton* button(QWidget* view, const QString& words) {
    for (QPushButton* b : view->findChildren<QPushButton*>())
      if (b->text() == words) return b;
    return nullptr;
  }
  // The tries run in this process, which is safe because they neither crash nor hang.
  static WorkbenchTools minifying_tools() {
    WorkbenchTools with_minifier = tools();
    with_minifier.minifier = [](const Artefact&, const MinifyRequest& request) -> Result<MinifyTool> {
      MinifyTool tool;
      const double planted = request.compiler == "broken" ? 0.25 : 0;
      tool.oracle = minify::accuracy_oracle(request.compiler, interpreter(planted), {}, 1);
      tool.words = {"accuracy:broken", "partita minify graph.py --once", "partita", 1e-3, {}};
      tool.culprit = [](const minify::MinifyResult&, const Progress&) -> Result<minify::Culprit> {
        return minify::Culprit{"planted_pass", {}, {}};
      };
      return tool;
    };
    return with_minifier;
  }

 private Q_SLOTS:
  void initTestCase() { folder_.keep_settings_here(); }

  void a_failing_graph_is_minified_in_view() {
    Session bench(minifying_tools());
    bench.window().show();
    bench.documents().open(folder_.write("minify.py", *tests::joint_graph(4)));
    QVERIFY(wait_shown(bench));
    bench.views().get<MinifyController>().minify({"accuracy", "interp", {}});  // nothing is wrong with it
    QVERIFY(wait_minified(bench));
    QVERIFY(bench.views().get<MinifyController>().view()->headline().contains("does not fail"));
    MinifyView* view = bench.views().get<MinifyController>().view();
    QCOMPARE(view->request().compiler, std::string("broken"));
    Watchdog watchdog;
    button(view, "Minify")->click();
    QVERIFY(view->running());
    QVERIFY(wait_minified(bench));
    QVERIFY2(watchdog.blocked().isEmpty(), qPrintable(watchdog.blocked()));
    QCOMPARE(bench.window().page(), static_cast<QWidget*>(view));
    QVERIFY2(view->headline().startsWith("1 of 44 calls still fails: values"), qPrintable(view->headline()));
    QVERIFY(view->details().contains("Guilty pass: planted_pass"));
    QVERIFY(view->tried()->model()->rowCount() > 3);
    QVERIFY(view->code()->document()->text().contains("aten.gelu.default"));
    QCOMPARE(view->graph()->scene()->picture.graph->size(), std::size_t{3});  // input, gelu, output
    bench.views().get<MinifyController>().save_repro(folder_.filePath("repro"));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(QFile::exists(folder_.filePath("repro/README.md")) && QFile::exists(folder_.filePath("repro/repro.py")));
    QVERIFY(button(view, "Show folder")->isVisible());
    QString parent = bench.documents().current()->key;
    button(view, "Open graph")->click();
    QVERIFY(wait_shown(bench));
    QCOMPARE(bench.documents().current()->key, parent + "/minified 1");
    bench.views().get<CompareController>().compare({"interp", {"broken"}, true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(bench.views().get<CompareController>().view()->table()->model()->rows()[0].cells[0].text,
             QString("differs"));
  }

  void the_picture_is_whole_and_folds() {
    Session bench(minifying_tools());
    bench.window().show();
    bench.documents().open(folder_.write("large.py", *tests::joint_graph(60, true)));
    QVERIFY(wait_shown(bench));
    bench.views().get<MinifyController>().minify({"accuracy", "interp", {}});  // nothing is wrong with it
    QVERIFY(wait_minified(bench));
    GraphView* picture = bench.views().get<MinifyController>().view()->graph();
    QVERIFY(QTest::qWaitFor([&] { return picture->scene() && bench.jobs().idle(); }, 30000));
    const std::size_t cards = picture->scene()->picture.cards.size();
    QCOMPARE(picture->cards_in_view().size(), cards);
    const auto folded = std::ranges::find_if(picture->scene()->picture.cards, [](const Card& c) { return !c.node; });
    QVERIFY(folded != picture->scene()->picture.cards.end());
    const std::string frame = picture->scene()->picture.frames[folded->frame].key;
    picture->ask_fold_of(QString::fromStdString(frame));
    QVERIFY(QTest::qWaitFor([&] { return picture->scene()->picture.cards.size() > cards; }, 30000));
  }

  void a_minification_is_paused_accepted_and_cancelled() {
    WorkbenchTools slow = minifying_tools();
    slow.minifier = [fast = slow.minifier](const Artefact& artefact,
                                           const MinifyRequest& request) -> Result<MinifyTool> {
      TRY(MinifyTool tool, fast(artefact, request));
      tool.oracle.judge = [judge = tool.oracle.judge](const minify::Candidate& c, const Progress* progress) {
        QThread::msleep(20);
        return judge(c, progress);
      };
      return tool;
    };
    Session bench(slow);
    bench.window().show();
    bench.documents().open(folder_.write("steer.py", *tests::joint_graph(6)));
    QVERIFY(wait_shown(bench));
    MinifyView* view = bench.views().get<MinifyController>().view();
    auto begin = [&] {
      bench.views().get<MinifyController>().minify(view->request());
      return QTest::qWaitFor([&] { return !view->log().empty(); }, 30000);
    };
    QVERIFY(begin());
    button(view, "Pause")->click();
    QTest::qWait(300);  // the current try ends
    auto tries = view->log().last().tries;
    QTest::qWait(300);
    QCOMPARE(view->log().last().tries, tries);
    QVERIFY(view->running());
    button(view, "Resume")->click();
    QVERIFY(QTest::qWaitFor([&] { return view->log().last().tries > tries; }, 30000));
    button(view, "Accept now")->click();
    QVERIFY(wait_minified(bench));
    QVERIFY2(view->headline().contains("still fail"), qPrintable(view->headline()));
    QVERIFY(begin());
    button(view, "Cancel")->click();
    QVERIFY(wait_minified(bench));
    QVERIFY2(view->headline().startsWith("Cancelled at "), qPrintable(view->headline()));
    QVERIFY(begin());
    bench.jobs().cancel_all();
    QVERIFY(wait_minified(bench));
    QVERIFY(view->headline().startsWith("Cancelled at "));
  }

  void every_view_of_the_table_is_shown_by_its_name() {
    WorkbenchTools given = minifying_tools();
    given.store_file = folder_.filePath("views.sqlite").toStdString();
    Session bench(given);
    bench.window().show();
    bench.documents().open(folder_.write("views.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    for (const ViewRow& row : view_rows()) {
      // These tools run no compilers, plan no kernels, answer no questions and know no PyTorch.
      const bool offered = !QStringList{"run", "kernels", "questions", "inductor"}.contains(row.name);
      QCOMPARE(bench.views().show(row.name), offered);
      QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 60000));
    }
    QVERIFY(!bench.views().show("no such view"));
    QVERIFY(bench.views().show("coverage"));
    QCOMPARE(bench.window().page()->metaObject()->className(), "partita::views::CoverageView");
    QVERIFY(bench.views().show("history"));
    QVERIFY(bench.views().get<HistoryController>().on_screen());
  }

  void crashing_tries_run_in_child_processes() {
    auto given = program_tools("aten.gelu.default:crash", PARTITA_BINARY);
    QVERIFY(bool(given));
    given->store_file.clear();
    given->minifier = [own = given->minifier](const Artefact& artefact,
                                              const MinifyRequest& request) -> Result<MinifyTool> {
      TRY(MinifyTool tool, own(artefact, request));
      tool.memory = nullptr;  // the user's own store is not asked
      return tool;
    };
    Session bench(*given);
    bench.window().show();
    bench.documents().open(folder_.write("crash.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    QCOMPARE(bench.views().get<MinifyController>().view()->request().compiler, std::string("planted"));
    Watchdog watchdog;
    bench.views().get<MinifyController>().minify({"crash", "planted", {}});
    QVERIFY(wait_minified(bench));
    QVERIFY2(watchdog.blocked().isEmpty(), qPrintable(watchdog.blocked()));
    QCOMPARE(bench.views().get<MinifyController>().view()->headline(), QString("1 of 22 calls still fails: signal 11"));
    bench.views().get<MinifyController>().view()->choose({"crash", "planted", {}});
    QVERIFY(bench.command_line().endsWith(" --check crash:cpu --plant aten.gelu.default:crash -o repro"));
    QVERIFY(bench.views().get<MinifyController>().view()->details().contains("No guilty pass: it fails before any"));
  }
};

QTEST_MAIN(TestMinifying)
#include "test_minifying.moc"
