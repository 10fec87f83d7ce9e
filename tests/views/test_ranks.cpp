// The ranks of a folder side by side: how their collectives meet, and the way from a rung to its node.
#include <QDir>
#include <fstream>

#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/ranks/ranks_controller.h"

using namespace partita;
using namespace partita::tests;
using namespace partita::views;

namespace {

/// FX text of a rank that sums `count` times over all ranks.
std::string text_of(int count) {
  std::string lines, value = "x";
  for (int i = 0; i < count; ++i) {
    const std::string n = i == 0 ? "" : "_" + std::to_string(i);
    lines += "        all_reduce" + n + R"(: "f32[4][1]cpu" = torch.ops._c10d_functional.all_reduce.default()" + value +
             ", 'sum', '0')\n        wait_tensor" + n +
             R"(: "f32[4][1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)" + n + ")\n";
    value = "wait_tensor" + n;
  }
  return "class GraphModule(torch.nn.Module):\n    def forward(self, x: \"f32[4][1]cpu\"):\n" + lines +
         "        return (" + value + ",)\n";
}

}  // namespace

class TestRanks : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_rank_that_starts_one_more_is_found() {
    const QDir folder(folder_.filePath("job"));
    for (int rank = 0; rank < 3; ++rank) {
      QVERIFY(folder.mkpath(QString("rank_%1").arg(rank)));
      std::ofstream(folder.filePath(QString("rank_%1/forward.py").arg(rank)).toStdString())
          << text_of(rank == 1 ? 2 : 1);
    }
    Session bench(tools());
    bench.window().resize(1200, 800);
    bench.window().show();
    bench.documents().open(folder.path());
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && bench.documents().current(); }, 30000));
    QVERIFY(bench.views().show("ranks"));
    RanksView* view = bench.views().get<RanksController>().view();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && view->plot()->ladder(); }, 30000));
    QCOMPARE(view->summary(), QString("3 ranks with 2 graphs; 2 collectives, 1 does not match"));
    // It begins at what is wrong, in the lane of the rank that starts it.
    QCOMPARE(view->plot()->row(), 1);
    QVERIFY2(view->readout().contains("ranks 0, 2 never start it"), qPrintable(view->readout()));
    QVERIFY(view->readout().startsWith("rank 1: "));
    QTest::keyClick(view->plot(), Qt::Key_Left);
    QVERIFY2(view->readout().startsWith("ranks 0, 2: never starts"), qPrintable(view->readout()));
    QTest::keyClick(view->plot(), Qt::Key_Up);
    QVERIFY2(view->readout().contains("waited for at once"), qPrintable(view->readout()));
    QVERIFY(view->plot()->grab().toImage().width() > 100);
    // To the node, in the graph of the lane's first rank.
    QTest::keyClick(view->plot(), Qt::Key_Return);
    QVERIFY(
        QTest::qWaitFor([&] { return bench.jobs().idle() && bench.selection().spot().node == "all_reduce"; }, 30000));
    QVERIFY(!bench.views().get<RanksController>().on_screen());
  }

  void what_has_no_ranks_says_so() {
    Session bench(tools());
    bench.window().show();
    bench.documents().open(folder_.write("plain.py", *tests::joint_graph(1)));
    QVERIFY(wait_shown(bench));
    QVERIFY(bench.views().show("ranks"));
    QCOMPARE(bench.views().get<RanksController>().view()->summary(),
             QString("Open a folder with the graphs or logs of a job's ranks"));
  }

 private:
  TestFolder folder_;
};

QTEST_MAIN(TestRanks)
#include "test_ranks.moc"
