#include <QtTest>
#include <cmath>

#include "core/functionalize/functionalize.h"
#include "core/interp/interpreter.h"
#include "core/passes/run_passes.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using partita::testing::elements;
using partita::testing::f32;
using partita::testing::fx;

namespace {

constexpr const char* parameters =
    "q: <f32[2, 2, 5, 4][40, 20, 4, 1]>, k: <f32[2, 2, 6, 4][48, 24, 4, 1]>, v: <f32[2, 2, 6, 4][48, 24, 4, 1]>, "
    "m: <f32[5, 6][6, 1]>, b: <b8[2, 1, 1, 6][6, 6, 6, 1]>, h: <f32[4, 1, 6][6, 6, 1]>, w: <f32[2, 1, 5, 6][30, 30, 6, "
    "1]>";
#define SCORES "t = $transpose.int(k, -2, -1)\ns = $matmul(q, t)\n"
#define WEIGHS(scores) "p = $softmax.int(" scores ", -1)\no = $matmul(p, v)\nreturn (o,)"

struct Case {
  const char* name;
  const char* body;
  bool fused = true;
};
const Case cases[] = {
    {"nothing else", SCORES WEIGHS("s")},
    {"divided", SCORES "d = $div.Tensor(s, 2.0)\n" WEIGHS("d")},
    {"a mask, then scaled", SCORES "a = $add.Tensor(s, m)\nd = $mul.Tensor(a, 0.5)\n" WEIGHS("d")},
    {"scaled, then a mask before it", SCORES "d = $mul.Tensor(s, 0.5)\na = $add.Tensor(m, d)\n" WEIGHS("a")},
    {"filled by the least number", SCORES "f = $masked_fill.Scalar(s, b, -3.4e+38)\n" WEIGHS("f")},
    {"filled by -inf: NaN where nothing is left", SCORES "f = $masked_fill.Scalar(s, b, -inf)\n" WEIGHS("f")},
    {"a mask of -inf", SCORES "x = $where.ScalarSelf(b, -inf, w)\na = $add.Tensor(s, x)\n" WEIGHS("a")},
    {"a mask, then filled", SCORES "a = $add.Tensor(s, m)\nf = $masked_fill.Scalar(a, b, -1e+38)\n" WEIGHS("f")},
    {"filled, then a mask", SCORES "f = $masked_fill.Scalar(s, b, -1e+38)\na = $add.Tensor(f, m)\n" WEIGHS("a")},
    {"chosen",
     SCORES "c = $full([], -1e+38, dtype = torch.float32, layout = torch.strided, device = device(type='cpu'), "
            "pin_memory = False)\nf = $where.self(b, s, c)\n" WEIGHS("f")},
    {"three dimensions, a term in the product, and views",
     "x = $view(q, [4, 5, 4])\ny = $view(k, [4, 6, 4])\nt = $transpose.int(y, 1, 2)\ns = $baddbmm(h, x, t, beta = 0.5, "
     "alpha = 0.25)\nr = $view(s, [2, 2, 5, 6])\na = $add.Tensor(r, m)\np = $softmax.int(a, -1)\nu = $view(p, [4, 5, "
     "6])\nz = $view(v, [4, 6, 4])\no = $bmm(u, z)\nreturn (o,)"},
    {"windows with a mask each",
     "x = $view(q, [4, 1, 5, 4])\ny = $view(k, [4, 1, 6, 4])\nt = $transpose.int(y, -2, -1)\ns = $matmul(x, t)\nr = "
     "$view(s, [2, 2, 1, 5, 6])\nu = $unsqueeze(w, 2)\ne = $view(u, [1, 2, 1, 5, 6])\na = $add.Tensor(r, e)\nc = "
     "$view(a, [4, 1, 5, 6])\np = $softmax.int(c, -1)\nz = $view(v, [4, 1, 6, 4])\no = $matmul(p, z)\nreturn (o,)"},
    {"matrices",
     "x = $select.int(q, 0, 1)\ny = $select.int(k, 0, 1)\nz = $select.int(v, 0, 1)\nx1 = $select.int(x, 0, 0)\ny1 = "
     "$select.int(y, 0, 0)\nz1 = $select.int(z, 0, 0)\nt = $t(y1)\ns = $mm(x1, t)\np = $softmax.int(s, 1)\no = $mm(p, "
     "z1)\nreturn (o,)"},

    {"weights that are returned", SCORES "p = $softmax.int(s, -1)\no = $matmul(p, v)\nreturn (o, p)", false},
    {"scores that are returned", SCORES "p = $softmax.int(s, -1)\no = $matmul(p, v)\nreturn (o, s)", false},
    {"a softmax over queries", SCORES "p = $softmax.int(s, -2)\no = $matmul(p, v)\nreturn (o,)", false},
    {"filled by a number that scores could have", SCORES "f = $masked_fill.Scalar(s, b, -10000.0)\n" WEIGHS("f"),
     false},
    {"values of another width",
     SCORES "p = $softmax.int(s, -1)\nn = $slice.Tensor(v, 3, 0, 3)\no = $matmul(p, n)\nreturn (o,)", false},
    {"scores times a tensor", SCORES "d = $mul.Tensor(s, m)\n" WEIGHS("d"), false},
};

}  // namespace

class TestFuseAttention : public QObject {
  Q_OBJECT

  static FunctionalGraph functional(const char* body, const std::vector<bool>& requires_grad = {}) {
    FunctionalizeOptions how;
    how.requires_grad = requires_grad;
    auto made = functionalize(*fx(parameters, body), how);
    if (!made) throw std::runtime_error(made.error().line());
    return *std::move(made);
  }
  static Tensor values(Sizes sizes, double seed) {
    std::int64_t count = 1;
    for (const std::int64_t n : sizes) count *= n;
    std::vector<double> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(2 * std::sin(seed + 1.7 * static_cast<double>(i)));
    return f32(std::move(sizes), all);
  }
  /// Does the pass find attention?
  static bool changes(Graph& graph) {
    PassContext context;
    const auto run = run_passes(graph, passes_of(Stage::FunctionalPasses), context);
    return run &&
           std::ranges::any_of(run->passes, [](const PassRun& p) { return p.name == "fuse_attention" && p.changed; });
  }

 private Q_SLOTS:
  void values_stay_data() {
    QTest::addColumn<int>("at");
    for (std::size_t i = 0; i < std::size(cases); ++i) QTest::newRow(cases[i].name) << static_cast<int>(i);
  }
  void values_stay() {
    QFETCH(int, at);
    const Case& c = cases[at];
    const FunctionalGraph made = functional(c.body);
    // All keys of the first batch, some of the second.
    const Tensor hidden = *f32({2, 1, 1, 6}, {1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0}).to(DType::Bool);
    const std::vector<Value> inputs = {
        values({2, 2, 5, 4}, 1), values({2, 2, 6, 4}, 2), values({2, 2, 6, 4}, 3), values({5, 6}, 4), hidden,
        values({4, 1, 6}, 6),    values({2, 1, 5, 6}, 7)};
    const auto before = interpret(*made.graph, inputs);
    QCOMPARE(changes(*made.graph), c.fused);
    const auto after = interpret(*made.graph, inputs);
    QVERIFY(before && after);
    const std::vector<double> want = elements(before->front()), got = elements(after->front());
    QCOMPARE(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      QVERIFY2(std::fabs(got[i] - want[i]) < 1e-5 || (std::isnan(got[i]) && std::isnan(want[i])),
               qPrintable(QString("[%1]: %2 beside %3").arg(i).arg(got[i]).arg(want[i])));
  }

  // The operator's mask has no gradient.
  void trained_masks_stay() {
    const char* body = SCORES "a = $add.Tensor(s, m)\n" WEIGHS("a");
    QVERIFY(changes(*functional(body, {true, true, true, false}).graph));
    QVERIFY(!changes(*functional(body, {true, true, true, true}).graph));
  }
  // What comes after it could not tell that no gradient goes through.
  void regions_without_gradients_stay() {
    const char* body = "f = torch._C._set_grad_enabled(False)\n" SCORES
                       "p = $softmax.int(s, -1)\no = $matmul(p, v)\nn = torch._C._set_grad_enabled(True)\nreturn (o,)";
    QVERIFY(!changes(*functional(body, {true, true, true}).graph));
    QVERIFY(changes(*functional(body).graph));
  }
};

QTEST_GUILESS_MAIN(TestFuseAttention)
#include "test_fuse_attention.moc"
