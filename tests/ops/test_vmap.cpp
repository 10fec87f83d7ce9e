// vmap in dynamo's graphs. Values are compared with PyTorch's in tests/cli/aot_cases/r_vmap*.
#include <QTest>

#include "core/functionalize/to_aten.h"
#include "tests/support/fx.h"

using namespace partita;
using namespace partita::testing;

namespace {

/// `lines` over a, which is x in a vmap of 3, and `result` of them.
std::unique_ptr<Graph> vmap(const std::string& lines, const std::string& result) {
  const std::string call = "torch._functorch.predispatch.";
  return fx("x: <f32[3, 4][4, 1]>, y: <f32[4][1]>", "n = " + call + "_vmap_increment_nesting(3, 'error')\na = " + call +
                                                        "_add_batch_dim(x, 0, 1)\n" + lines + "\nout = " + call +
                                                        "_remove_batch_dim(" + result + ", 1, 3, 0)\nm = " + call +
                                                        "_vmap_decrement_nesting()\nreturn (out,)");
}

}  // namespace

class TestVmap : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void becomes_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<QString>("calls");
    QTest::addRow("elements") << "b = a * y" << "mul";
    QTest::addRow("a reduction") << "b = a.sum()" << "sum";
    QTest::addRow("products") << "b = torch.dot(a, y)" << "mv";
    QTest::addRow("no rule") << "b = torch.histc(a, 3)" << "map_impl";
    QTest::addRow("not of the batch") << "b = y.exp()" << "exp unsqueeze expand";
  }

  void becomes() {
    QFETCH(QString, lines);
    QFETCH(QString, calls);
    const auto graph = vmap(lines.toStdString(), "b");
    const auto aten = to_aten(*graph);
    QVERIFY2(aten, aten ? "" : aten.error().line().c_str());
    QStringList found;
    for (const Node* node : *aten->graph)
      if (node->op()->is_call() && !node->is(Op::getitem()))
        found << QString::fromStdString(std::string(node->op()->brief()));
    QCOMPARE(found.join(' '), calls);
    QCOMPARE(aten->graph->outputs()[0].node()->meta.tensor()->sizes[0], SymExpr(3));
  }

  void is_refused_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<QString>("why");
    QTest::addRow("random numbers") << "b = a + torch.rand(4)" << "aten.rand.default in a vmap draws random numbers";
    QTest::addRow("a write to what has no batch") << "b = y.add_(a)" << "without one";
    QTest::addRow("a number of each part") << "c = a.sum().item()\nb = a * c" << "in a vmap";
    QTest::addRow("another function") << "b = torch._C._functorch._wrap_for_grad(a, 2)" << "_wrap_for_grad";
    QTest::addRow("no end") << "torch._functorch.predispatch._vmap_decrement_nesting()\nb = y * 2" << "no vmap";
  }

  void is_refused() {
    QFETCH(QString, lines);
    QFETCH(QString, why);
    const auto aten = to_aten(*vmap(lines.toStdString(), "b"));
    QVERIFY(!aten);
    QVERIFY2(QString::fromStdString(aten.error().line()).contains(why), aten.error().line().c_str());
  }
};

QTEST_APPLESS_MAIN(TestVmap)
#include "test_vmap.moc"
