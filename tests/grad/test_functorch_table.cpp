// The default decompositions of functorch, call for call as PyTorch 2.13 traces them: functorch_table.txt has what
// make_fx(decomposition_table=default_decompositions) printed for each call.
#include <QtTest>
#include <fstream>

#include "core/grad/joint.h"
#include "tests/support/fx.h"

using namespace partita;
using namespace partita::testing;

class TestFunctorchTable : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void calls_data() {
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<QString>("call");
    QTest::addColumn<QString>("expected");
    std::ifstream file(PARTITA_SOURCE_DIR "/tests/grad/functorch_table.txt");
    QVERIFY(file.good());
    QString dtype, call, expected;
    const auto add = [&] {
      if (!call.isEmpty()) QTest::newRow(qPrintable(dtype + " " + call)) << dtype << call << expected;
      expected.clear();
    };
    for (std::string line; std::getline(file, line);) {
      const QString text = QString::fromStdString(line);
      if (!text.startsWith("## ")) {
        expected += text + "\n";
        continue;
      }
      add();
      dtype = text.section(' ', 1, 1);
      call = text.section(' ', 2);
    }
    add();
  }
  void calls() {
    QFETCH(QString, dtype);
    QFETCH(QString, call);
    QFETCH(QString, expected);
    const std::string type = "<" + dtype.toStdString() + "[2, 3][3, 1]>";
    const auto graph =
        fx("x_1: " + type + ", g_1: " + type + ", m_1: <b8[2, 3][3, 1]>, v_1: <" + dtype.toStdString() + "[][]>",
           "y: " + type + " = " + call.toStdString() + "\nreturn y");
    const Status done = decompose_as_functorch(*graph);
    QVERIFY2(done, done ? "" : done.error().line().c_str());
    QCOMPARE(QString::fromStdString(body(*renamed_in_order(*graph))), expected);
    const Node* result = graph->outputs()[0].node();
    QCOMPARE(QString::fromStdString(annotation(result->meta)), dtype + "[2, 3][3, 1]cpu");
  }

  void what_the_table_lacks_stays() {
    const auto graph = fx("x: <f32[3][1]>", "y: <f32[3][1]> = $gelu(x)\nreturn (y,)");
    QVERIFY(decompose_as_functorch(*graph));
    QCOMPARE(body(*graph), std::string("y = torch.ops.aten.gelu.default(x)\nreturn (y,)\n"));
  }
};

QTEST_GUILESS_MAIN(TestFunctorchTable)
#include "test_functorch_table.moc"
