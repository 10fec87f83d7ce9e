// Composite operators must decompose into the ATen calls that PyTorch 2.13 traces for them, in its order.
#include <QTest>

#include "core/functionalize/to_aten.h"
#include "core/interp/interpreter.h"
#include "core/ops/record/operator_program.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

/// The called operators in order: "unsqueeze permute bmm".
std::string calls(const Graph& graph) {
  std::string out;
  for (const Node* node : graph)
    if (node->op()->is_call() && !node->is(Op::getitem())) {
      if (!out.empty()) out += " ";
      out += node->op()->brief();
    }
  return out;
}

}  // namespace

class TestComposites : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void becomes_data() {
    QTest::addColumn<QString>("inputs");
    QTest::addColumn<QString>("lines");
    QTest::addColumn<QString>("expected");
    auto row = [](const char* name, const char* inputs, const char* lines, const char* expected) {
      QTest::addRow("%s", name) << inputs << lines << expected;
    };
    const char *matrix = "x: <f32[3, 5][5, 1]>", *square = "x: <f32[3, 3][3, 1]>", *vector = "x: <f32[4][1]>";
    const char* two = "x: <f32[2, 3][3, 1]>, y: <f32[3, 4][4, 1]>";
    row("a program", matrix, "a = $special_logsumexp(x, [1])\nreturn (a,)", "logsumexp");
    row("a program within a program", matrix, "f = $where(x)\na = f[0]\nreturn (a,)", "nonzero unbind");
    row("einsum of a matrix product", two, "a = $einsum('ij,jk->ik', [x, y])\nreturn (a,)",
        "unsqueeze permute unsqueeze permute permute view permute view bmm view permute view");
    row("einsum of a diagonal", square, "a = $einsum('ii->i', [x])\nreturn (a,)", "diagonal permute permute");
    row("einsum of one operand", matrix, "a = $einsum('ij->', [x])\nreturn (a,)", "permute sum");
    row("quantile", matrix, "a = $quantile.scalar(x, 0.5, 1)\nreturn (a,)",
        "scalar_tensor sort view mul isnan any expand masked_fill _to_copy gather sub ceil_ _to_copy gather lerp_ "
        "squeeze_");
    row("gradient", vector, "f = $gradient.scalarint(x)\na = f[0]\nreturn (a,)",
        "slice slice sub div slice slice sub div slice slice sub div div cat");
    row("a chain of products", "x: <f32[2, 3][3, 1]>, y: <f32[3, 4][4, 1]>, z: <f32[4, 2][2, 1]>",
        "a = $linalg_multi_dot([x, y, z])\nreturn (a,)", "mm mm view");
    row("matrix norm", square, "a = $linalg_matrix_norm(x, 1)\nreturn (a,)", "linalg_vector_norm amax");
    row("stft", "x: <f32[100][1]>", "a = $stft(x, 10, return_complex = True)\nreturn (a,)",
        "unsqueeze as_strided _fft_r2c transpose_ squeeze_");
    row("a window", "x: <f32[8][1]>", "a = $hann_window(8)\nb = $mul.Tensor(x, a)\nreturn (b,)", "hann_window mul");
  }

  void becomes() {
    QFETCH(QString, inputs);
    QFETCH(QString, lines);
    QFETCH(QString, expected);
    const auto made = to_aten(*fx(inputs.toStdString(), lines.toStdString()));
    QVERIFY2(made, made ? "" : made.error().line().c_str());
    QCOMPARE(QString::fromStdString(calls(*made->graph)), expected);
    for (const Node* node : *made->graph) QVERIFY2(node->is_output() || node->meta.known(), node->name().c_str());
  }

  /// PyTorch asks a symbolic size whether it is 1, which leaves a guard.
  void one_cell_is_known_by_the_example() {
    for (const std::int64_t size : {1, 2}) {
      const auto graph =
          fx("n: 'Sym(s0)', x: <c64[1, 2, 4, 4][32, 16, 4, 1]>", "a = $adaptive_avg_pool2d(x, [n, 1])\nreturn (a,)");
      graph->shapes->set_hint("s0", size);
      const auto made = to_aten(*graph);
      QVERIFY2(made, made ? "" : made.error().line().c_str());
      QCOMPARE(QString::fromStdString(calls(*made->graph)), size == 1 ? "mean" : "_adaptive_avg_pool2d");
      QVERIFY(!made->graph->shapes->guards().empty());
    }
  }

  /// Values PyTorch computes for x = [[1, 2, 4], [7, 3, 5]] and y = [1, 0, 2].
  void computes_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<std::vector<double>>("expected");
    auto row = [](const char* name, const char* lines, std::vector<double> expected) {
      QTest::addRow("%s", name) << lines << std::move(expected);
    };
    row("einsum", "a = $einsum('ij,j->i', [x, y])\nreturn (a,)", {9, 17});
    row("einsum with an ellipsis", "a = $einsum('...i,...i', [x, x])\nreturn (a,)", {21, 83});
    row("kron", "a = $kron(y, y)\nreturn (a,)", {1, 0, 2, 0, 0, 0, 2, 0, 4});
    row("quantile", "a = $quantile.scalar(x, 0.25, 1)\nreturn (a,)", {1.5, 4});
    row("trapezoid", "a = $trapezoid.dx(x, dx = 2)\nreturn (a,)", {9, 18});
    row("gradient", "f = $gradient.scalarint(x, dim = 1)\na = f[0]\nreturn (a,)", {1, 1.5, 2, -4, -1, 2});
    row("cov", "a = $cov(x)\nreturn (a,)", {7.0 / 3, -1, -1, 4});
    row("combinations", "a = $combinations(y)\nreturn (a,)", {1, 0, 1, 2, 0, 2});
    row("block_diag", "a = $block_diag([y, y])\nreturn (a,)", {1, 0, 2, 0, 0, 0, 0, 0, 0, 1, 0, 2});
    row("pad_sequence",
        "s = $select.int(x, 0, 0)\nt = $slice.Tensor(y, 0, 0, 2)\n"
        "a = $pad_sequence([s, t], True, -1.0)\nreturn (a,)",
        {1, 2, 4, 1, 0, -1});
    row("hann_window", "a = $hann_window(4)\nreturn (a,)", {0, 0.5, 1, 0.5});
    row("embedding bounds the rows of its weight",
        "i: <i64[1][1]> = $zeros([1], dtype = torch.int64)\ne = torch.nn.functional.embedding(i, x, None, 1.0)\nreturn "
        "(x,)",
        {0.218218, 0.436436, 0.872872, 7, 3, 5});
    row("multi_dot", "t = $t(x)\na = $linalg_multi_dot([x, t, x])\nreturn (a,)", {252, 141, 249, 614, 315, 547});
  }

  void computes() {
    QFETCH(QString, lines);
    QFETCH(std::vector<double>, expected);
    const auto graph = fx("x: <f32[2, 3][3, 1]>, y: <f32[3][1]>", lines.toStdString());
    const auto found = interpret(*graph, {f32({2, 3}, {1, 2, 4, 7, 3, 5}), f32({3}, {1, 0, 2})});
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    const Tensor* out = found->at(0).get<Tensor>();
    QVERIFY(out);
    const Tensor wide = *out->to(DType::Float64)->clone();
    QCOMPARE(wide.numel(), static_cast<std::int64_t>(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i)
      QVERIFY2(std::abs(wide.as<double>()[i] - expected[i]) < 1e-5, std::to_string(wide.as<double>()[i]).c_str());
  }

  /// Values of PyTorch 2.13 for x = [[0, 2, 2], [0, 5, 3]]: functions and operators that Python has and ATen has not.
  void python_computes_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<std::vector<double>>("expected");
    auto row = [](const char* name, const char* lines, std::vector<double> expected) {
      QTest::addRow("%s", name) << lines << std::move(expected);
    };
    row("several outs",
        "v = $zeros([2])\ni = $zeros([2], dtype = torch.int64)\nm = torch.max(x, 1, out = (v, i))\n"
        "a = torch.cat([v, i, m[0], m[1]])\nreturn (a,)",
        {2, 5, 1, 1, 2, 5, 1, 1});
    row("unique gives one tensor", "a = torch.functional.unique(x)\nreturn (a,)", {0, 2, 3, 5});
    row("unique of rows", "f = torch.functional.unique(x, dim = 1, return_counts = True)\na = f[1]\nreturn (a,)",
        {1, 1, 1});
    row("a list of bools is a mask", "a = x[(slice(None, None, None), [True, False, True])]\nreturn (a,)",
        {0, 2, 0, 3});
    row("the method", "f = x.unique(return_counts = True)\na = f[1]\nreturn (a,)", {2, 2, 1, 1});
    row("unique_consecutive gives one tensor", "a = torch.functional.unique_consecutive(x)\nreturn (a,)",
        {0, 2, 0, 5, 3});
    row("counts without inverse",
        "f = torch.functional.unique_consecutive(x, return_counts = True)\na = f[1]\nreturn (a,)", {1, 2, 1, 1, 1});
    row("unravel_index", "f = torch.functional.unravel_index(x, (2, 4))\na = f[1]\nreturn (a,)", {0, 2, 2, 0, 1, 3});
    row("tensordot of one dim", "t = $t(x)\na = torch.functional.tensordot(x, t, 1)\nreturn (a,)", {8, 16, 16, 34});
    row("tensordot of listed dims", "a = torch.functional.tensordot(x, x, ([1], [1]))\nreturn (a,)", {8, 16, 16, 34});
    row("atleast_2d of several", "f = torch.functional.atleast_2d(x, x)\na = f[1]\nreturn (a,)", {0, 2, 2, 0, 5, 3});
    row("a number divided", "t = $add.Tensor(x, 1)\na = 7 // t\nreturn (a,)", {7, 2, 2, 7, 1, 1});
    row("a number of another kind divided", "t = $add.Tensor(x, 1)\na = 7.5 // t\nreturn (a,)", {7, 2, 2, 7, 1, 1});
    row("a number less", "a = x.__rsub__(2)\nreturn (a,)", {2, 0, 0, 2, -3, -1});
    row("a number by the method", "t = $add.Tensor(x, 1)\na = t.__rfloordiv__(7)\nreturn (a,)", {7, 2, 2, 7, 1, 1});
    row("a diagonal filled", "a = x.fill_diagonal_(7)\nreturn (a,)", {7, 2, 2, 0, 7, 3});
    row("a diagonal of columns filled", "v = $t(x)\nw = v.fill_diagonal_(7)\nreturn (x,)", {7, 2, 2, 0, 7, 3});
    row("a diagonal filled again below",
        "a = $zeros([5, 2], dtype = torch.int64)\nb = a.fill_diagonal_(1, wrap = True)\nreturn (b,)",
        {1, 0, 0, 1, 0, 0, 1, 0, 0, 1});
    row("a diagonal of many rows filled",  // by one view, not by one for each two rows
        "a = $zeros([6000000, 1], dtype = torch.int64)\nb = a.fill_diagonal_(1, wrap = True)\n"
        "c = $slice.Tensor(b, 0, 5999996)\nreturn (c,)",
        {1, 0, 1, 0});
    row("a number raised", "a = x.__rpow__(2)\nreturn (a,)", {1, 4, 4, 1, 32, 8});
    row("a number shifted", "a = 1 << x\nreturn (a,)", {1, 4, 4, 1, 32, 8});
  }

  void python_computes() {
    QFETCH(QString, lines);
    QFETCH(std::vector<double>, expected);
    const auto graph = to_aten(*fx("x: <i64[2, 3][3, 1]>", lines.toStdString()));
    QVERIFY2(graph, graph ? "" : graph.error().line().c_str());
    const auto found = interpret(*graph->graph, {i64({2, 3}, {0, 2, 2, 0, 5, 3})});
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    QCOMPARE(elements(found->at(0)), expected);
  }

  void attention_of_shared_heads_keeps_the_layout_of_the_query() {
    const auto made = to_aten(*fx("q: <f32[2, 4, 3, 4][48, 4, 16, 1]>, k: <f32[2, 2, 8, 4][64, 32, 4, 1]>",
                                  "a = $scaled_dot_product_attention(q, k, k, enable_gqa = True)\n"
                                  "b = $transpose.int(a, 1, 2)\nc = $view(b, [2, 3, 16])\nreturn (c,)"));
    QVERIFY2(made, made ? "" : made.error().line().c_str());
  }

  void a_number_as_weight_of_lerp_stays_a_number() {
    const auto made = to_aten(*fx("x: <f32[3][1]>, y: <f32[3][1]>", "a = x.lerp(y, 0.25)\nreturn (a,)"));
    QVERIFY2(made, made ? "" : made.error().line().c_str());
    bool found = false;
    for (const Node* node : *made->graph) found = found || (node->op() && node->op()->name == "aten.lerp.Scalar");
    QVERIFY(found);
  }

  void a_program_makes_one_side_of_a_choice_data() {
    QTest::addColumn<QString>("program");
    QTest::addColumn<QString>("expected");
    auto row = [](const char* program, const char* expected) { QTest::addRow("%s", program) << program << expected; };
    row("relu(x) if yes else neg(x)", "relu");
    row("relu(x) if not yes else neg(x)", "neg");
    row("sin(x) if no else cos(x) if mode == 'sum' and yes else neg(x)", "cos");
    row("sin(x) if no or none is None and not mode == 'mean' else cos(x)", "sin");
    row("exp((sin(x) if x is None else cos(x)) + x)", "cos add exp");
    row("a = refuse('never') if dim(x) < 2 else sin(x); b = None if no is None else a; tanh(b)", "sin tanh");
    row("any(x, 1, keepdim=not no)", "any");
    row("clamp(x, None if yes else 1, 2 if 1 < 2 else 3)", "clamp");
  }

  void a_program_makes_one_side_of_a_choice() {
    QFETCH(QString, program);
    QFETCH(QString, expected);
    Graph graph("choice");
    Node* x = graph.placeholder("x", TensorMeta::contiguous(DType::Float32, {2, 3}));
    Builder build(graph, nullptr);
    build_program(build, program.toStdString(),
                  {{"x", x}, {"yes", true}, {"no", false}, {"none", Arg()}, {"mode", std::string("sum")}});
    QCOMPARE(QString::fromStdString(calls(graph)), expected);
  }

  void a_condition_is_known() {
    Graph graph("choice");
    Node* x = graph.placeholder("x", TensorMeta::contiguous(DType::Float32, {2, 3}));
    Builder build(graph, nullptr);
    QVERIFY_THROWS_EXCEPTION(Raise, build_program(build, "sin(x) if x else cos(x)", {{"x", x}}));
    QVERIFY_THROWS_EXCEPTION(Raise, build_program(build, "sin(x) if True", {{"x", x}}));
    QVERIFY_THROWS_EXCEPTION(Raise, build_program(build, "refuse('no') if True else sin(x)", {{"x", x}}));
  }

  void refuses_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<QString>("why");
    QTest::newRow("dims of another number") << "a = $einsum('ijk->i', [x])\nreturn (a,)"
                                            << "does not match the number of dimensions (2)";
    QTest::newRow("data") << "d = torch._C._autograd._get_data_attr(x)\na = d.mul_(2)\nreturn (a,)"
                          << "the attribute data, through which values change";
  }

  void refuses() {
    QFETCH(QString, lines);
    QFETCH(QString, why);
    const auto made = to_aten(*fx("x: <f32[2, 3][3, 1]>", lines.toStdString()));
    QVERIFY(!made);
    QVERIFY2(made.error().message.find(why.toStdString()) != std::string::npos, made.error().message.c_str());
  }
};

QTEST_APPLESS_MAIN(TestComposites)
#include "test_composites.moc"
