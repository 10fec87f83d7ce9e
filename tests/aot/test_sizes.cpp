// Symbolic sizes on their way from a file's graph to the graphs that a compiler gets.
#include <QtTest>

#include "core/aot/aot.h"
#include "core/ir/print.h"
#include "tests/support/fx.h"

using namespace partita;
using namespace partita::testing;

class TestSizes : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// Dynamo's text without example values: what the ranges of its sizes decide needs none.
  void symbolic_sizes_without_examples() {
    const auto graph = fx("s0: \"Sym(s0)\", L_x_: <f32[s0, 4][4, 1]>",
                          "r = L_x_.reshape(-1)\ny = r[slice(None, s0, None)]\nz = y.sin()\nreturn (z,)");
    const auto graphs = aot(*graph, nullptr, {});
    QVERIFY2(graphs, graphs ? "" : graphs.error().line().c_str());
    QCOMPARE(annotation(graphs->partition.forward->outputs()[0].node()->meta), std::string("f32[s0][1]cpu"));
  }

  /// What the program asserts of item()'s value decides the conditions of later calls, and is asserted still.
  void asserted_sizes_need_no_examples() {
    const auto graph = fx("x: <f32[10][1]>, k: <i64[][]>",
                          "n: \"Sym(u0)\" = k.item()\nge: \"Sym(u0 >= 0)\" = n >= 0\nc = torch._check(ge)\n"
                          "le: \"Sym(u0 <= 8)\" = n <= 8\nd = torch._check(le)\n"
                          "a = torch.arange(n)\nb = x.narrow(0, n, 2)\nr = b * 2\nreturn (a, r)");
    const auto graphs = aot(*graph, nullptr, {.train = false});
    QVERIFY2(graphs, graphs ? "" : graphs.error().line().c_str());
    const std::string text = print(*graphs->partition.forward);
    QCOMPARE(QString::fromStdString(text).count("_assert_scalar.default("), 2);
  }

  void python_functions_of_sizes_stay() {
    const auto graph = fx("s0: \"Sym(s0)\", x: <f32[s0][1]>",
                          "f = torch.sym_float(s0)\nh = f * 0.5\nk = math_trunc(h)\nr = torch._sym_sqrt(f)\n"
                          "c = math.ceil(r)\ny = x * k\nz = y + c\nreturn (z,)");
    const auto graphs = aot(*graph, nullptr, {.train = false});
    QVERIFY2(graphs, graphs ? "" : graphs.error().line().c_str());
    const std::string text = print(*graphs->partition.forward);
    for (const char* call : {"math_trunc(", "torch._sym_sqrt(", "math.ceil("})
      QVERIFY2(text.find(call) != std::string::npos, text.c_str());
  }
};

QTEST_GUILESS_MAIN(TestSizes)
#include "test_sizes.moc"
