#include <QtTest>

#include "core/interp/aten_calls.h"
#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

const std::string inputs =
    "q: <f32[2, 2, 5, 4][40, 4, 8, 1]>, k: <f32[2, 1, 5, 4][20, 20, 4, 1]>, v: <f32[2, 1, 5, 4][20, 20, 4, 1]>, "
    "bias: <f32[2][1]>";
const std::string call =
    "(q, k, v, score_mod, (5, 5, mask_mod), 0.5, {'BACKEND': 'AUTO'}, (bias,), ())\n"
    "out: <f32[2, 2, 5, 4][40, 4, 8, 1]> = flex[0]\nsums: <f32[2, 2, 5][10, 5, 1]> = flex[1]\n"
    "most: <f32[2, 2, 5][10, 5, 1]> = flex[2]\nreturn (out, sums, most)";

/// ALiBi under a causal mask that leaves the first query nothing. `score` is the line that makes `r` of the score s.
std::string mods(const std::string& score) {
  return "\n    class score_mod(torch.nn.Module):\n"
         "        def forward(self, s: <f32[][]>, b: <i32[][]>, h: <i32[][]>, i: <i32[][]>, j: <i32[][]>, bias: "
         "<f32[2][1]>):\n"
         "            " +
         score +
         "\n            return r\n"
         "\n    class mask_mod(torch.nn.Module):\n"
         "        def forward(self, b: <i32[][]>, h: <i32[][]>, i: <i32[][]>, j: <i32[][]>):\n"
         "            r: <b8[][]> = $gt.Tensor(i, j)\n            return r\n";
}

std::unique_ptr<Graph> flex(const std::string& score) {
  return fx(inputs,
            "score_mod = self.score_mod\nmask_mod = self.mask_mod\nflex = torch.ops.higher_order.flex_attention" + call,
            mods(score));
}

const std::string scores =
    "n = $arange.default(5)\ni = $view(n, [1, 1, 5, 1])\nj = $view(n, [1, 1, 1, 5])\nh = $view(bias, [1, 2, 1, 1])\n"
    "kk = $expand.default(k, [2, 2, 5, 4])\nvv = $expand.default(v, [2, 2, 5, 4])\nt = $transpose.int(kk, -2, -1)\n"
    "s0 = $matmul(q, t)\ns = $mul.Tensor(s0, 0.5)\nd = $sub.Tensor(j, i)\nhd = $mul.Tensor(h, d)\n"
    "s1 = $add.Tensor(s, hd)\nm = $gt.Tensor(i, j)\nlow = $scalar_tensor(-inf)\nkept = $where.self(m, s1, low)\n";

const std::string alibi =
    "x: <f32[][]> = $index.Tensor(bias, [h])\n            d: <i32[][]> = $sub.Tensor(j, i)\n"
    "            xd: <f32[][]> = $mul.Tensor(x, d)\n            r: <f32[][]> = $add.Tensor(s, xd)";
/// The same before AOTAutograd.
const std::string alibi_in_torch = "x = bias[h]\n            r = s + x * (j - i)";

}  // namespace

class TestFlexAttention : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void forward_is_its_formula_data() {
    QTest::addColumn<QString>("score");
    QTest::newRow("ATen") << QString::fromStdString(alibi);
    QTest::newRow("torch") << QString::fromStdString(alibi_in_torch);
    QTest::newRow("composite") << QString::fromStdString(
        "y = s + bias[h] * (j - i)\n            r = torch.where(i >= 0, y, -inf)");
  }
  void forward_is_its_formula() {
    QFETCH(QString, score);
    const auto graph = flex(score.toStdString());
    const auto formula =
        fx(inputs, scores +
                       "p = $_safe_softmax(kept, -1)\nout = $matmul(p, vv)\nl = $logsumexp(kept, [-1])\n"
                       "sums = $div.Tensor(l, 0.6931471805599453)\na = $amax(kept, [-1])\n"
                       "most = $div.Tensor(a, 0.6931471805599453)\nreturn (out, sums, most)");
    const auto values = random_inputs(*graph, 3);
    QVERIFY(bool(values));
    const auto found = interpret(*graph, *values);
    QVERIFY2(bool(found), found ? "" : found.error().line().c_str());
    const auto expected = interpret(*formula, *values);
    QVERIFY2(bool(expected), expected ? "" : expected.error().line().c_str());
    for (std::size_t i = 0; i < 3; ++i) QCOMPARE(elements((*found)[i]), elements((*expected)[i]));
    // As the queries lie in memory.
    QCOMPARE((*found)[0].get<Tensor>()->strides, (Sizes{40, 4, 8, 1}));
  }

  void backward_is_its_formula() {
    const std::string more =
        ", out: <f32[2, 2, 5, 4][40, 4, 8, 1]>, l: <f32[2, 2, 5][10, 5, 1]>, "
        "g: <f32[2, 2, 5, 4][40, 20, 4, 1]>";
    const auto graph = fx(inputs + more,
                          "score_mod = self.score_mod\njoint = self.joint\nmask_mod = self.mask_mod\n"
                          "flex = torch.ops.higher_order.flex_attention_backward(q, k, v, out, l, g, None, score_mod, "
                          "joint, (5, 5, mask_mod), 0.5, {}, (bias,), ())\na = flex[0]\nb = flex[1]\nc = flex[2]\n"
                          "return (a, b, c)",
                          mods(alibi) +
                              "\n    class joint(torch.nn.Module):\n"
                              "        def forward(self, s: <f32[][]>, b: <i32[][]>, h: <i32[][]>, i: <i32[][]>, "
                              "j: <i32[][]>, g: <f32[][]>, bias: <f32[2][1]>):\n"
                              "            return [g, None, None, None, None, None]\n");
    const auto formula =
        fx(inputs + more,
           scores +
               "n2 = $mul.Tensor(l, 0.6931471805599453)\nu = $unsqueeze(n2, -1)\nd0 = $sub.Tensor(kept, u)\n"
               "e = $exp(d0)\nlost = $eq.Scalar(u, -inf)\np = $masked_fill.Scalar(e, lost, 0)\n"
               "vt = $transpose.int(vv, -2, -1)\ndp = $matmul(g, vt)\nog = $mul.Tensor(out, g)\n"
               "w = $sum.dim_IntList(og, [-1], True)\ndiff = $sub.Tensor(dp, w)\nds = $mul.Tensor(p, diff)\n"
               "x = $mul.Tensor(ds, 0.5)\na = $matmul(x, kk)\nxt = $transpose.int(x, -2, -1)\n"
               "b0 = $matmul(xt, q)\nb = $sum.dim_IntList(b0, [1], True)\npt = $transpose.int(p, -2, -1)\n"
               "c0 = $matmul(pt, g)\nc = $sum.dim_IntList(c0, [1], True)\nreturn (a, b, c)");
    auto values = random_inputs(*graph, 4);
    QVERIFY(bool(values));
    const auto sums = interpret(*flex(alibi), {(*values)[0], (*values)[1], (*values)[2], (*values)[3]});
    QVERIFY(bool(sums));
    (*values)[4] = (*sums)[0];
    (*values)[5] = (*sums)[1];
    const auto found = interpret(*graph, *values);
    QVERIFY2(bool(found), found ? "" : found.error().line().c_str());
    const auto expected = interpret(*formula, *values);
    QVERIFY2(bool(expected), expected ? "" : expected.error().line().c_str());
    for (std::size_t i = 0; i < 3; ++i) QCOMPARE(elements((*found)[i]), elements((*expected)[i]));
  }

  // A sum of one number is that number, but the sum of all scores is not each of them.
  void what_goes_beyond_one_score_is_refused() {
    for (const char* score : {"r: <f32[][]> = $sum(s)", "r: <f32[][]> = $cumsum(s, 0)", "r: <f32[][]> = $rand_like(s)",
                              "x: <f32[2][1]> = $neg(bias)\n            r: <f32[][]> = $index.Tensor(x, [h])"}) {
      const auto graph = flex(score);
      const auto run = interpret(*graph, *random_inputs(*graph, 3));
      QVERIFY2(!run, score);
      QVERIFY(run.error().fault == Fault::Unsupported);
    }
  }

  // _flex_attention_autocast_impl: the products within keep single precision.
  void autocast_casts_what_attention_reads() {
    const auto graph = fx(inputs,
                          "region = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)\n"
                          "score_mod = self.score_mod\nmask_mod = self.mask_mod\n"
                          "flex = torch.ops.higher_order.flex_attention(q, k, v, score_mod, (5, 5, mask_mod), 0.5, {}, "
                          "(bias,), ())\nout = flex[0]\n"
                          "leave = torch.amp.autocast_mode._exit_autocast(region)\nreturn (out,)",
                          mods(alibi_in_torch));
    const auto changed = resolve_calls(*graph);
    QVERIFY2(bool(changed), changed ? "" : changed.error().line().c_str());
    std::vector<std::string> products;
    for (const Node* node : *graph)
      if (node->op()->name == "aten.bmm.default")
        products.emplace_back(short_name(node->args()[0].node()->meta.tensor()->dtype));
    QCOMPARE(products, (std::vector<std::string>{"f32", "bf16"}));
  }
};

QTEST_GUILESS_MAIN(TestFlexAttention)
#include "test_flex_attention.moc"
