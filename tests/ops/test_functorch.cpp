// vmap and gradients in dynamo's graphs. Values are compared with PyTorch's in tests/cli/aot_cases/r_vmap*, r_func_*.
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

class TestFunctorch : public QObject {
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
    QTest::addRow("an unknown function") << "b = torch._C._functorch._unknown(a, 2)" << "_unknown is not known";
    QTest::addRow("an annotation") << "c: <f32[3, 4][4, 1]> = torch._C._functorch._add_batch_dim(x, 0, 1)\nb = c * 2"
                                   << "another number of dimensions";
    QTest::addRow("a dimension") << "c = torch._C._functorch._add_batch_dim(x, 2, 1)\nb = c * 2" << "no dimension";
    QTest::addRow("no arguments") << "c: <f32[4][1]> = torch._C._functorch._add_batch_dim()\nb = c * 2" << "no tensor";
    QTest::addRow("no end") << "torch._functorch.predispatch._vmap_decrement_nesting()\nb = y * 2" << "no vmap";
  }

  void gradients_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<QString>("expected");  // calls, or why it is refused
    const char* gradient =
        "\ng = torch._functorch.eager_transforms._autograd_grad((b,), [a], create_graph = True)\nr = g[0]";
    const auto row = [&](const char* name, const std::string& lines, const char* expected) {
      QTest::addRow("%s", name) << QString::fromStdString("a = torch._C._functorch._wrap_for_grad(x, 1)\n" + lines)
                                << expected;
    };
    row("a product", std::string("b = (a * x).sum()") + gradient, "alias mul sum ones_like expand mul");
    row("no dependence", std::string("b = x.sum()") + gradient, "alias zeros_like");
    row("under no_grad",
        std::string("torch._C._set_grad_enabled(False)\nc = a.sin()\ntorch._C._set_grad_enabled(True)\n"
                    "b = (a + c).sum()") +
            gradient,
        "alias sin add sum ones_like expand");
    row("a write", std::string("c = a * 1\nd = c.exp()\ne = c.neg_()\nb = (c + d).sum()") + gradient,
        "alias mul exp neg add sum ones_like expand neg mul add mul");
    row("a write under no_grad",
        std::string("c = a * 1\ntorch._C._set_grad_enabled(False)\nd = c.neg_()\ntorch._C._set_grad_enabled(True)\n"
                    "b = c.sum()") +
            gradient,
        "under no_grad");
    row("a write below a view", std::string("c = a * 1\nv = c[0]\ne = c.neg_()\nb = v.sum()") + gradient,
        "writes what is differentiated");
    row("a second time",
        std::string("c = a @ a.t()\nb = torch.logdet(c)") + gradient + "\nh = " + (gradient + 5) + "\n",
        "cannot differentiate again");
    row("without arguments", "r = torch._functorch.eager_transforms._autograd_grad()", "no tensor");
    row("of numbers", "g = torch._functorch.eager_transforms._autograd_grad((a,), [3])\nr = g[0]", "no tensor");
    row("no dual", "r = torch._functorch.predispatch._make_dual()", "no tensor");
    row("no jvp", "torch._functorch.predispatch._jvp_decrement_nesting()\nr = a", "no jvp");
    row("no grad", "torch._C._functorch._grad_decrement_nesting()\nr = a", "ends nothing");
  }

  void gradients() {
    QFETCH(QString, lines);
    QFETCH(QString, expected);
    const auto aten = to_aten(*fx("x: <f32[3, 4][4, 1]>", lines.toStdString() + "\nreturn (r,)"));
    QStringList found;
    if (aten)
      for (const Node* node : *aten->graph)
        if (node->op()->is_call()) found << QString::fromStdString(std::string(node->op()->brief()));
    const QString is = aten ? found.join(' ') : QString::fromStdString(aten.error().line());
    QVERIFY2(aten ? is == expected : is.contains(expected), qPrintable(is));
  }

  void is_refused() {
    QFETCH(QString, lines);
    QFETCH(QString, why);
    const auto aten = to_aten(*vmap(lines.toStdString(), "b"));
    QVERIFY(!aten);
    QVERIFY2(QString::fromStdString(aten.error().line()).contains(why), aten.error().line().c_str());
  }
};

QTEST_APPLESS_MAIN(TestFunctorch)
#include "test_functorch.moc"
