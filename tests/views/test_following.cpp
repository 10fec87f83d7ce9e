// Files that change while they are open: what is added to a log comes, and the user stays where he is.
#include <QTest>
#include <fstream>

#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"

using namespace partita;
using namespace partita::views;
using namespace partita::tests;

namespace {

std::string record(const std::string& name, const std::string& op) {
  return "V1129 10:00:00.000000 1 torch/x.py:1] {\"" + name +
         "\": {}, \"frame_id\": 0, \"frame_compile_id\": 0, \"attempt\": 0, \"has_payload\": \"0\"}\n"
         "\tclass GraphModule(torch.nn.Module):\n\t    def forward(self, x: \"f32[4]\"):\n"
         "\t        y = torch.ops.aten." +
         op + ".default(x)\n\t        return (y,)\n";
}

void append(const QString& path, const std::string& text) {
  std::ofstream(path.toStdString(), std::ios::app) << text;
}

}  // namespace

class TestFollowing : public QObject {
  Q_OBJECT

  TestFolder folder_;

 private Q_SLOTS:
  void initTestCase() { folder_.keep_settings_here(); }

  void new_graphs_come_and_the_selection_stays() {
    const QString log = folder_.filePath("grows.log");
    append(log, record("dynamo_output_graph", "cos") + record("aot_forward_graph", "sin"));
    Session bench(tools());
    bench.window().show();
    bench.documents().open(log);
    QVERIFY(wait_shown(bench));
    bench.selection().select_node("y");
    const Document* shown = bench.documents().current();
    append(log, record("aot_joint_graph", "exp") + record("another_graph", "abs"));
    QVERIFY(QTest::qWaitFor([&] { return bench.documents().find(log + "#0_0.aot_joint_graph") != nullptr; }, 20000));
    QVERIFY(bench.documents().tree().find(log + "#0_0.aot_joint_graph").isValid());
    QCOMPARE(bench.documents().current(), shown);
    QCOMPARE(bench.selection().spot().node, QString("y"));
    bench.screen().show(log + "#0_0.aot_joint_graph");
    QVERIFY(wait_shown(bench) && bench.documents().current()->graph->find("y"));
  }

  void a_changed_file_is_read_again_on_request() {
    const QString file = folder_.filePath("graph.py");
    append(file,
           "class GraphModule(torch.nn.Module):\n  def forward(self, x: \"f32[4]\"):\n"
           "    y = torch.ops.aten.cos.default(x)\n    return (y,)\n");
    Session bench(tools());
    bench.window().show();
    bench.documents().open(file);
    QVERIFY(wait_shown(bench));
    append(file, "\n# changed\n");
    QVERIFY(QTest::qWaitFor([&] { return shown_errors(bench).contains("F5"); }, 20000));
    const QString key = bench.documents().current()->key;
    bench.documents().reload(file);
    QVERIFY(wait_shown(bench));
    QCOMPARE(bench.documents().current()->key, key);
    QVERIFY(bench.documents().current()->artefact.text()->ends_with("# changed\n"));
  }
};

QTEST_MAIN(TestFollowing)
#include "test_following.moc"
