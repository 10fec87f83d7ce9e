// Jobs of the window: which of them answer, how they end, and how they are listed.
#include <QPushButton>
#include <QTest>
#include <QThread>

#include "core/ops/record/call.h"
#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/compare/compare_controller.h"
#include "views/jobs/jobs_view.h"

using namespace partita;
using namespace partita::views;
using namespace partita::tests;

class TestJobs : public QObject {
  Q_OBJECT

  TestFolder folder_;

 private Q_SLOTS:
  void initTestCase() { folder_.keep_settings_here(); }

  void only_the_newest_job_of_a_key_answers() {
    JobTracker jobs;
    QObject receiver;
    QStringList answers;
    for (int i = 0; i < 3; ++i)
      jobs.start<int>(
          "count", "key", &receiver,
          [i](const Progress& progress) -> Result<int> {
            for (int k = 0; k < 20 && !progress.cancelled(); ++k) QThread::msleep(2);
            return i;
          },
          [&](Result<int> r) { answers << QString::number(*r); });
    QVERIFY(QTest::qWaitFor([&] { return jobs.idle(); }, 10000));
    QCOMPARE(answers, QStringList{"2"});
    int id = jobs.start<int>(
        "never", {}, &receiver,
        [](const Progress& progress) -> Result<int> {
          while (!progress.cancelled()) QThread::msleep(1);
          return 1;
        },
        [&](Result<int>) { answers << "cancelled jobs do not answer"; });
    jobs.cancel(id);
    QVERIFY(QTest::qWaitFor([&] { return jobs.idle(); }, 10000));
    QCOMPARE(answers.size(), 1);
  }

  void a_job_that_raises_ends_with_an_error() {
    JobTracker jobs;
    std::vector<Diagnostic> errors;
    const std::function<Result<int>(const Progress&)> works[] = {
        [](const Progress&) -> Result<int> { fail("sizes do not fit"); },
        [](const Progress&) -> Result<int> { return static_cast<int>((SymExpr(INT64_MAX) * 2).as_int()); },
        [](const Progress&) -> Result<int> { throw std::runtime_error("disk"); },
    };
    for (const auto& work : works)
      jobs.start<int>("raises", "", this, work, [&](Result<int> r) {
        QVERIFY(!r);
        errors.push_back(r.error());
      });
    QVERIFY(QTest::qWaitFor([&] { return jobs.idle(); }, 30000));
    QCOMPARE(errors.size(), std::size_t{3});
    std::ranges::sort(errors, {}, &Diagnostic::message);
    QCOMPARE(errors[0].code, std::string("sym.overflow"));
    QCOMPARE(errors[1].line(), std::string("internal error: disk"));
    QCOMPARE(errors[2].message, std::string("sizes do not fit"));
  }

  void jobs_are_listed_cancelled_and_remembered() {
    WorkbenchTools with_slow = tools();
    with_slow.backends.push_back({"slow", [](const Progress& progress) -> CompileFn {
                                    return [&progress](const Graph&) -> Result<CompiledFn> {
                                      progress.at(0.25, "waiting");
                                      while (!progress.cancelled()) QThread::msleep(1);
                                      return stopped_on_request();
                                    };
                                  }});
    with_slow.backends.push_back({"refuses", [](const Progress&) -> CompileFn {
                                    return [](const Graph&) -> Result<CompiledFn> {
                                      return input_error("test.refused", "no such thing");
                                    };
                                  }});
    Session bench(with_slow);
    bench.window().show();
    bench.documents().open(folder_.write("jobs.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    bench.views().get<CompareController>().compare({"interp", {"refuses"}, true, Tolerance{}, {}});
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    bench.views().get<CompareController>().compare({"interp", {"slow"}, true, Tolerance{}, {}});
    QTest::keyClick(&bench.window(), Qt::Key_J, Qt::ControlModifier | Qt::ShiftModifier);
    auto* view = bench.window().findChild<JobsView*>("jobs");
    const auto& rows = view->model()->rows();
    QVERIFY(QTest::qWaitFor([&] { return !rows.empty() && rows[0].cells[2].text == "25 %"; }, 30000));
    QCOMPARE(rows[0].cells[0].text, QString("running"));
    QCOMPARE(rows[0].cells[1].text, QString("Compare interp with slow"));
    QCOMPARE(rows[0].cells[5].text, QString("waiting"));
    view->cancel()->click();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && rows[0].cells[0].text != "ending"; }, 30000));
    QCOMPARE(rows[0].cells[0].text, QString("cancelled"));
    QCOMPARE(rows[0].cells[1].text, QString("Compare interp with slow"));
    const auto failed = std::ranges::find(rows, QString("failed"), [](const Row& row) { return row.cells[0].text; });
    QVERIFY(failed != rows.end());
    QCOMPARE(failed->cells[1].text, QString("Compare interp with refuses"));
    QVERIFY(failed->cells[5].text.contains("no such thing"));
    QVERIFY(std::ranges::any_of(
        rows, [](const Row& row) { return row.cells[0].text == "done" && row.cells[1].text.startsWith("Draw "); }));
  }
};

QTEST_MAIN(TestJobs)
#include "test_jobs.moc"
