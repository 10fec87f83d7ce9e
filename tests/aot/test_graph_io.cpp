#include <QtTest>

#include "core/aot/graph_io.h"
#include "core/interp/interpreter.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

/// Text gives no example of s0 and s1.
std::unique_ptr<Graph> dynamic() {
  return fx("s: \"Sym(s0)\", t: \"Sym(s1)\", x: <f32[s0, s1][s1, 1]>, y: <f32[s1][1]>",
            "a: <f32[s0, s1][s1, 1]> = $add.Tensor(x, y)\nb: <f32[s1, s0][s0, 1]> = $view(a, [t, s])\nreturn (b,)");
}

}  // namespace

class TestGraphIo : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void sizes_come_from_the_inputs() {
    // Numbered with the symbols, and as PyTorch's example inputs, without them.
    for (const int first : {2, 0}) {
      const auto graph = dynamic();
      TensorFile io;
      io.tensors["input." + std::to_string(first)] = f32({2, 3}, {1, 2, 3, 4, 5, 6});
      io.tensors["input." + std::to_string(first + 1)] = f32({3}, {10, 20, 30});
      const auto inputs = gather_inputs(*graph, nullptr, io, std::nullopt);
      QVERIFY2(inputs, inputs ? "" : inputs.error().line().c_str());
      QCOMPARE(*inputs->values[0].get<std::int64_t>(), std::int64_t{2});
      QCOMPARE(*inputs->values[1].get<std::int64_t>(), std::int64_t{3});
      QCOMPARE(*graph->shapes->hint(SymExpr::symbol("s1")), std::int64_t{3});
      const auto outputs = interpret(*graph, inputs->values);
      QVERIFY2(outputs, outputs ? "" : outputs.error().line().c_str());
      QCOMPARE(elements(outputs->at(0)), (std::vector<double>{11, 22, 33, 14, 25, 36}));
    }
  }

  void what_is_made_up_fits_what_is_given() {
    const auto graph = dynamic();
    TensorFile io;
    io.tensors["input.0"] = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    const auto inputs = gather_inputs(*graph, nullptr, io, 7);
    QVERIFY2(inputs, inputs ? "" : inputs.error().line().c_str());
    QCOMPARE(inputs->values[3].get<Tensor>()->sizes, (Sizes{3}));
  }

  void sizes_that_disagree_are_told() {
    const auto graph = dynamic();
    TensorFile io;
    io.tensors["input.0"] = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    io.tensors["input.1"] = f32({2}, {10, 20});
    const auto inputs = gather_inputs(*graph, nullptr, io, std::nullopt);
    QVERIFY(!inputs);
    QCOMPARE(inputs.error().code, std::string("interp.symbols"));
    QCOMPARE(inputs.error().where.node, std::string("y"));
  }
};

QTEST_GUILESS_MAIN(TestGraphIo)
#include "test_graph_io.moc"
