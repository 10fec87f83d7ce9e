// The window survives crashes and hangs of compiled code, and neither cancelling nor closing it has to wait.
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>
#include <cerrno>
#include <fstream>

#include <sys/wait.h>

#include "app/window_tools.h"
#include "core/ir/print.h"
#include "tests/support/corpus.h"
#include "tests/views/graphs.h"
#include "views/compare/compare_controller.h"
#include "views/run/run_controller.h"
#include "views/tensor/values_controller.h"
#include "views/window/window_session.h"

using namespace partita;
using namespace partita::views;

namespace {

#ifdef PARTITA_SANITIZED
constexpr int kSoonMs = 2000;
#else
constexpr int kSoonMs = 1000;  // generous: a quiet machine needs a tenth of it
#endif

constexpr const char* kInPlace = R"(class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4][1]cpu"):
        exp: "f32[4][1]cpu" = torch.ops.aten.exp.default(x)
        add_: "f32[4][1]cpu" = torch.ops.aten.add_.Tensor(x, exp);  exp = None
        mul: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(add_, 2);  add_ = None
        return (mul, x)
)";

bool has_children() {
  siginfo_t info;
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

WorkbenchTools planted_tools(const std::string& plant) {
  auto tools = program_tools(plant, PARTITA_BINARY);
  if (!tools) qFatal("%s", tools.error().line().c_str());
  tools->store_file.clear();
  return *tools;
}

const std::vector<Row>& rows(Session& bench) {
  return bench.views().get<CompareController>().view()->table()->model()->rows();
}

QString line_of(const Row& row) {
  QStringList cells;
  for (const Cell& cell : row.cells) cells << cell.text;
  return cells.join(" | ");
}

}  // namespace

class TestDeaths : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  QString write(const char* name, const std::string& text) {
    const QString path = folder_.filePath(name);
    std::ofstream(path.toStdString()) << text;
    return path;
  }
  bool open(Session& bench, const QString& path) {
    bench.window().show();
    bench.documents().open(path);
    return QTest::qWaitFor(
        [&] { return bench.jobs().idle() && bench.documents().current() && bench.documents().current()->code; },
        120000);
  }
  bool open_joint(Session& bench) { return open(bench, write("joint.py", print(*tests::joint_graph(2)))); }
  static bool idle(Session& bench, int ms = 60000) {
    return QTest::qWaitFor([&] { return bench.jobs().idle(); }, ms);
  }
  static void compare(Session& bench, const QString& found, bool per_node = true) {
    bench.views().get<CompareController>().compare({"interp", {found.toStdString()}, per_node, Tolerance{}, {}});
  }

 private Q_SLOTS:
  void initTestCase() {
    QSettings::setDefaultFormat(QSettings::IniFormat);
    QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, folder_.path());
    QCoreApplication::setOrganizationName("partita-test");
  }

  void a_crash_is_a_row_and_the_window_goes_on() {
    Session bench(planted_tools("aten.gelu.default:crash"));
    QVERIFY(open_joint(bench));
    for (const bool per_node : {true, false}) {
      compare(bench, "planted", per_node);
      QVERIFY(idle(bench));
      QVERIFY(!rows(bench).empty());
      const QString worst = line_of(rows(bench).front());
      QVERIFY2(worst.contains("signal 11") && worst.contains("aten.gelu.default (gelu, gelu_1)"), qPrintable(worst));
      QCOMPARE(rows(bench).front().cells[0].text, QString("died"));
      QCOMPARE(rows(bench).front().cells[1].text, QString("gelu"));
      QCOMPARE(rows(bench).size() > 1, per_node);  // the nodes before it are compared
    }
    bench.views().get<ValuesController>().look_at("gelu");
    QVERIFY(idle(bench));
    compare(bench, "cpu");
    QVERIFY(idle(bench));
    QVERIFY(rows(bench).size() > 20);
    for (const Row& row : rows(bench)) QVERIFY2(row.cells[0].text != "died", qPrintable(line_of(row)));
    QVERIFY(!has_children());
  }

  void a_crash_of_a_program_is_a_row() {
    Session bench(planted_tools("aten.gelu.default:crash"));
    QVERIFY(open(bench, QString(PARTITA_SOURCE_DIR) + "/resources/samples/mlp/program.pt2"));
    RunView* view = bench.views().get<RunController>().view();
    view->choose("partita", true);
    bench.views().get<RunController>().run(view->request());
    QVERIFY(idle(bench));
    QCOMPARE(view->results()->model()->rowCount(), 1);
    const QString row = line_of(view->results()->model()->rows().front());
    QVERIFY2(row.contains("signal 11") && row.contains("gelu"), qPrintable(row));
    view->choose("nop", true);  // it interprets, so nothing crashes
    bench.views().get<RunController>().run(view->request());
    QVERIFY(idle(bench));
    QVERIFY2(view->summary().contains(" results as in the file; "), qPrintable(view->summary()));
  }

  void a_hang_is_cancelled_at_once() {
    Session bench(planted_tools("aten.gelu.default:hang"));
    QVERIFY(open_joint(bench));
    compare(bench, "planted");
    QVERIFY(QTest::qWaitFor(has_children, 30000));
    QTest::qWait(300);
    QVERIFY(!bench.jobs().idle());
    QElapsedTimer clock;
    clock.start();
    bench.jobs().cancel_all();
    QVERIFY(idle(bench, 30000));
    qInfo("cancelled in %lld ms", static_cast<long long>(clock.elapsed()));
    QVERIFY(clock.elapsed() < kSoonMs);
    QVERIFY(!has_children());
    compare(bench, "cpu", false);
    QVERIFY(idle(bench));
    QVERIFY(!rows(bench).empty());
  }

  void closing_does_not_wait_for_a_hang() {
    auto bench = std::make_unique<Session>(planted_tools("aten.gelu.default:hang"));
    QVERIFY(open_joint(*bench));
    compare(*bench, "planted");
    QVERIFY(QTest::qWaitFor(has_children, 30000));
    QElapsedTimer clock;
    clock.start();
    QVERIFY(bench->jobs().stop_within(kSoonMs));
    bench.reset();
    qInfo("closed in %lld ms", static_cast<long long>(clock.elapsed()));
    QVERIFY(clock.elapsed() < 2 * kSoonMs);
    QVERIFY(!has_children());
  }

  void a_comparison_of_10000_nodes_is_cancelled_at_once() {
    const auto corpus = partita::testing::corpus();
    if (corpus.empty()) QSKIP(partita::testing::no_corpus);
    Session bench(planted_tools({}));
    QVERIFY(open(bench, QString::fromStdString((corpus / "big/gpt48/joint.py").string())));
    for (const int moment_ms : {100, 700, 2000}) {  // inputs, interpreter, compiler: where it is then, the machine says
      compare(bench, "cpu");
      QTest::qWait(moment_ms);
      QElapsedTimer clock;
      clock.start();
      bench.jobs().cancel_all();
      QVERIFY(idle(bench, 30000));
      qInfo("after %d ms cancelled in %lld ms", moment_ms, static_cast<long long>(clock.elapsed()));
      QVERIFY(clock.elapsed() < kSoonMs);
    }
    QVERIFY(!has_children());
  }

  void a_graph_that_writes_in_place_is_compared() {
    Session bench(planted_tools({}));
    QVERIFY(open(bench, write("in_place.py", kInPlace)));
    for (const bool per_node : {true, false}) {
      compare(bench, "cpu", per_node);
      QVERIFY(idle(bench));
      QVERIFY(!rows(bench).empty());
      for (const Row& row : rows(bench)) QCOMPARE(row.cells[0].text, QString("agrees"));
    }
  }
};

QTEST_MAIN(TestDeaths)
#include "test_deaths.moc"
