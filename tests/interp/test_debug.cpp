#include <QtTest>

#include "core/interp/debug_interpreter.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

struct Case {
  const char* name;
  const char* parameters;
  const char* body;
  std::vector<Value> inputs;
  const char* node;     ///< null: no mismatch
  const char* message;  ///< PyTorch's DebugInterpreter's message; see corpus/compilers.md
};

std::vector<Case> cases() {
  const Tensor dense = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor transposed = dense.view_as({2, 3}, {1, 2}, 0);
  const char* x23 = "x: <f32[2, 3][3, 1]>";
  const char* neg = "a: <f32[2, 3][3, 1]> = $neg(x)\nreturn (a,)";
  return {
      {"as annotated", x23, neg, {dense}, nullptr, nullptr},
      {"input of another dtype",
       x23,
       "return (x,)",
       {*dense.to(DType::Float64)},
       "x",
       "output 0 where {}: torch.float32 != torch.float64"},
      {"input of another size",
       x23,
       "return (x,)",
       {f32({4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})},
       "x",
       "output 0 where {}: torch.Size([2, 3]) aka (2, 3) != torch.Size([4, 3])"},
      {"input of another rank",
       x23,
       "return (x,)",
       {f32({2, 3, 1}, {1, 2, 3, 4, 5, 6})},
       "x",
       "output 0 where {}: torch.Size([2, 3]) aka (2, 3) != torch.Size([2, 3, 1])"},
      {"transposed input", x23, "return (x,)", {transposed}, "x", "output 0 where {}: (3, 1) aka (3, 1) != (1, 2)"},
      {"wrong stride in an annotation",
       x23,
       "a: <f32[2, 3][1, 2]> = $neg(x)\nreturn (a,)",
       {dense},
       "a",
       "output 0 where {}: (1, 2) aka (1, 2) != (3, 1)"},
      {"one dimension has a comma",
       "x: <f32[6][1]>",
       "a: <f32[3][1]> = $slice.Tensor(x, 0, 0, 9223372036854775807, 2)\nreturn (a,)",
       {f32({6}, {1, 2, 3, 4, 5, 6})},
       "a",
       "output 0 where {}: (1,) aka (1,) != (2,)"},
      {"strides of size one do not count",
       "x: <f32[1, 3][77, 1]>",
       "return (x,)",
       {f32({1, 3}, {1, 2, 3})},
       nullptr,
       nullptr},
      {"strides of empty tensors do not count",
       "x: <f32[0, 3][77, 5]>",
       "return (x,)",
       {f32({0, 3}, {})},
       nullptr,
       nullptr},
      {"symbols are bound",
       "x: <f32[s75, 3][3, 1]>",
       "a: <i64[s75, 3][3, 1]> = $neg(x)\nreturn (a,)",
       {dense},
       "a",
       "output 0 where {s75: 2}: torch.int64 != torch.float32"},
      {"symbolic sizes are compared with values put in",
       "x: <f32[s75, 3][3, 1]>",
       "a: <f32[2*s75, 3][3, 1]> = $neg(x)\nreturn (a,)",
       {dense},
       "a",
       "output 0 where {s75: 2}: torch.Size([2*s75, 3]) aka (4, 3) != torch.Size([2, 3])"},
  };
}

}  // namespace

class TestDebug : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void messages_are_pytorchs_data() {
    QTest::addColumn<int>("index");
    const auto all = cases();
    for (std::size_t i = 0; i < all.size(); ++i) QTest::newRow(all[i].name) << static_cast<int>(i);
  }
  void messages_are_pytorchs() {
    QFETCH(int, index);
    const Case c = cases()[static_cast<std::size_t>(index)];
    const auto run = debug_interpret(*fx(c.parameters, c.body), c.inputs);
    QVERIFY2(run, run ? "" : run.error().line().c_str());
    QCOMPARE(run->mismatches.size(), std::size_t{c.node != nullptr});
    if (!c.node) return;
    QCOMPARE(run->mismatches[0].node, std::string(c.node));
    QCOMPARE(QString::fromStdString(run->mismatches[0].message()), QString(c.message));
  }

  void all_are_collected_with_their_lines() {
    const auto graph = fx("x: <f32[2, 3][3, 1]>",
                          "# File: m.py:3 in forward, code: a = -x\na: <f64[2, 3][3, 1]> = $neg(x)\n"
                          "b: <f32[2, 3][3, 1]> = $sin(a)\nc: <f32[3, 2][2, 1]> = $t(b)\nreturn (c,)");
    const auto run = debug_interpret(*graph, {f32({2, 3}, {1, 2, 3, 4, 5, 6})});
    QVERIFY2(run, run ? "" : run.error().line().c_str());
    QCOMPARE(run->mismatches.size(), std::size_t{2});
    const Diagnostic error = mismatch_error(run->mismatches);
    QCOMPARE(error.exit_code(), 1);
    QCOMPARE(QString::fromStdString(error.line()),
             QString("graph GraphModule: node a: output 0 where {}: torch.float64 != torch.float32; 1 more mismatches "
                     "follow (from m.py:3 in forward)"));
    QCOMPARE(error.notes.size(), std::size_t{1});
    QVERIFY(error.notes[0].starts_with("node c: output 0 where {}: (2, 1) aka (2, 1) != (1, 3)"));
  }

  void a_kernel_with_a_wrong_stride_is_named() {
    const auto graph =
        fx("x: <f32[2, 3][3, 1]>", "a: <f32[2, 3][3, 1]> = $neg(x)\nb: <f32[2, 3][3, 1]> = $sin(a)\nreturn (b,)");
    InterpOptions options;
    options.evaluate = [](const Node& node, std::vector<Value> args, ValueKwargs, const EvalContext&) -> Result<Value> {
      Tensor t = *args[0].get<Tensor>();
      if (node.name() != "b") return Value(t);
      TRY(Tensor wrong, Tensor::empty_strided(t.dtype, t.sizes, {1, 2}));
      wrong.copy_from(t);
      return Value(std::move(wrong));
    };
    const auto run = debug_interpret(*graph, {f32({2, 3}, {1, 2, 3, 4, 5, 6})}, options);
    QVERIFY(run);
    QCOMPARE(run->mismatches.size(), std::size_t{1});
    QCOMPARE(run->mismatches[0].node, std::string("b"));
    QCOMPARE(run->mismatches[0].what, std::string("strides"));
  }

  void one_symbol_of_two_values_is_refused() {
    const auto graph = fx("x: <f32[s0][1]>, y: <f32[s0][1]>", "a: <f32[s0][1]> = $add.Tensor(x, y)\nreturn (a,)");
    const auto run = debug_interpret(*graph, {f32({2}, {1, 2}), f32({3}, {1, 2, 3})});
    QVERIFY(!run);
    QCOMPARE(run.error().code, std::string("interp.symbols"));
    QCOMPARE(run.error().message, std::string("size 0 of y is 3, but s0 is 2 by an earlier input"));
  }
};

QTEST_GUILESS_MAIN(TestDebug)
#include "test_debug.moc"
