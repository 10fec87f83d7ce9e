// Operators that compiled code once left to their evaluation: their loops, or those of what they decompose to, give the
// same, and no call is left but those that draw numbers.
#include <QtTest>

#include "codegen/cpu/cpu_machine.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/program/executable.h"
#include "core/aot/pipeline.h"
#include "core/compare/compare.h"
#include "core/fake/propagate.h"
#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "core/schedule/make_plan.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

struct Case {
  const char* name;
  const char* parameters;
  const char* lines;
  int calls = 0;  ///< that are left
};

const char* const pair = "x: <f32[3, 5][5, 1]>, y: <f32[3, 5][5, 1]>";
const char* const pair_and_gradient = "x: <f32[3, 5][5, 1]>, y: <f32[3, 5][5, 1]>, g: <f32[][]>";
const char* const image = "x: <f32[2, 3, 7, 8][168, 56, 8, 1]>";
const char* const volume = "x: <f32[2, 3, 5, 6, 7][630, 210, 42, 7, 1]>";

const Case cases[] = {
    {"smooth_l1_loss", pair, "r = $smooth_l1_loss(x, y, 1, 0.7)\ns = $smooth_l1_loss(x, y, 0, 0.0)\nreturn (r, s)"},
    {"smooth_l1_loss_backward", pair_and_gradient,
     "r = $smooth_l1_loss_backward(g, x, y, 1, 0.7)\ns = $smooth_l1_loss_backward(g, x, y, 2, 0.0)\nreturn (r, s)"},
    {"huber_loss", pair, "r = $huber_loss(x, y, 1, 0.7)\ns = $huber_loss(x, y, 2, 0.2)\nreturn (r, s)"},
    {"huber_loss_backward", pair_and_gradient, "r = $huber_loss_backward(g, x, y, 1, 0.7)\nreturn (r,)"},
    {"soft_margin_loss", pair_and_gradient,
     "r = $soft_margin_loss(x, y, 1)\ns = $soft_margin_loss_backward(g, x, y, 1)\nreturn (r, s)"},
    {"soft_margin_loss_backward of large products", pair_and_gradient,
     "a = $mul.Scalar(x, -300.0)\nr = $soft_margin_loss_backward(g, a, x, 2)\nreturn (r,)"},
    {"soft_margin_loss_backward of permuted rows",
     "x: <f32[2, 3, 5][0, 10, 2]>, y: <i64[3, 5][1, 3]>, z: <i64[2, 3, 5][15, 5, 1]>",
     "r = $soft_margin_loss_backward(x, y, z, 2)\nreturn (r,)"},
    {"binary_cross_entropy", pair_and_gradient,
     "p = $sigmoid(x)\nt = $sigmoid(y)\nr = $binary_cross_entropy(p, t, None, 1)\ns = $binary_cross_entropy(p, t, y, "
     "0)\n"
     "u = $binary_cross_entropy_backward(g, p, t, y, 1)\nreturn (r, s, u)"},
    {"binary_cross_entropy_with_logits", "x: <f32[3, 5][5, 1]>, y: <f32[3, 5][5, 1]>, w: <f32[5][1]>",
     "a = $mul.Scalar(x, 40.0)\nr = $binary_cross_entropy_with_logits(a, y, w, w, 1)\n"
     "s = $binary_cross_entropy_with_logits(x, y, None, None, 0)\nreturn (r, s)"},
    {"nll_loss2d", "x: <f32[2, 4, 3, 5][60, 15, 5, 1]>, w: <f32[4][1]>, g: <f32[][]>",
     "a = $arange(30)\nc = $remainder.Scalar(a, 4)\nt = $reshape(c, [2, 3, 5])\n"
     "p = $nll_loss2d_forward(x, t, w, 1, 2)\nr = p[0]\ns = p[1]\nq = $nll_loss2d_forward(x, t, None, 0, -100)\nu = "
     "q[0]\n"
     "v = $nll_loss2d_backward(g, x, t, w, 1, 2, s)\nd = $nll_loss2d_backward(u, x, t, None, 0, -100, s)\n"
     "return (r, s, u, v, d)"},
    {"avg_pool2d over windows of different sizes", image,
     "r = $avg_pool2d(x, [3, 3], [2, 2], [1, 1], True, False)\ns = $avg_pool2d(x, [3, 2], [2, 3], [1, 0], True, True)\n"
     "t = $avg_pool2d(x, [2, 2], [2, 2], [0, 0], False, True, 3)\nreturn (r, s, t)"},
    {"avg_pool2d_backward", image,
     "a = $avg_pool2d(x, [2, 2], [2, 2])\nr = $avg_pool2d_backward(a, x, [2, 2], [2, 2], [0, 0], False, True, None)\n"
     "b = $avg_pool2d(x, [3, 3], [2, 2], [1, 1], True, False)\n"
     "s = $avg_pool2d_backward(b, x, [3, 3], [2, 2], [1, 1], True, False, None)\n"
     "c = $avg_pool2d(x, [3, 2], [1, 3], [1, 1], False, True)\n"
     "t = $avg_pool2d_backward(c, x, [3, 2], [1, 3], [1, 1], False, True, 5)\n"
     "d = $avg_pool2d(x, [1, 2], [3, 4])\nu = $avg_pool2d_backward(d, x, [1, 2], [3, 4], [0, 0], False, True, None)\n"
     "return (r, s, t, u)"},
    {"gradients of adaptive and fractional maxima, and max_unpool", image,
     "p = $adaptive_max_pool2d(x, [3, 5])\nr = p[0]\ni = p[1]\ns = $adaptive_max_pool2d_backward(r, x, i)\n"
     "t = $max_unpool2d(r, i, [7, 8])\nu = $fractional_max_pool2d_backward(r, x, [2, 2], [3, 5], i)\n"
     "return (s, t, u)",
     1},
    {"adaptive_avg_pool3d", volume,
     "r = $_adaptive_avg_pool3d(x, [5, 3, 1])\ns = $_adaptive_avg_pool3d_backward(r, x)\nreturn (r, s)"},
    {"renorm", pair, "r = $renorm(x, 2.0, 0, 0.5)\nreturn (r,)"},
    {"batch norm with an update", image,
     "w = $full([3], 0.5)\nn = $_batch_norm_with_update_functional(x, w, w, w, w, 0.1, 1e-05)\n"
     "r = n[0]\ns = n[3]\nt = n[4]\nu = n[5]\nreturn (r, s, t, u)"},
    {"avg_pool3d", volume,
     "r = $avg_pool3d(x, [3, 2, 2], [2, 2, 3], [1, 0, 1], True, False)\n"
     "s = $avg_pool3d_backward(r, x, [3, 2, 2], [2, 2, 3], [1, 0, 1], True, False, None)\nreturn (r, s)"},
    {"max_pool3d", volume,
     "p = $max_pool3d_with_indices(x, [3, 2, 2], [2, 1, 3], [1, 0, 1])\nr = p[0]\ni = p[1]\n"
     "s = $max_pool3d_with_indices_backward(r, x, [3, 2, 2], [2, 1, 3], [1, 0, 1], [1, 1, 1], False, i)\n"
     "return (r, i, s)"},
    {"reflection_pad", image,
     "r = $reflection_pad2d(x, [3, 7, 2, 6])\ns = $reflection_pad2d_backward(r, x, [3, 7, 2, 6])\n"
     "t = $reflection_pad2d(x, [-1, 2, 0, -2])\nu = $reflection_pad2d_backward(t, x, [-1, 2, 0, -2])\n"
     "v = $select.int(x, 0, 0)\nw = $reflection_pad1d(v, [2, 1])\nreturn (r, s, t, u, w)"},
    {"replication_pad", volume,
     "r = $replication_pad3d(x, [3, 9, 2, 6, 1, 0])\ns = $replication_pad3d_backward(r, x, [3, 9, 2, 6, 1, 0])\n"
     "a = $select.int(x, 0, 0)\nt = $replication_pad2d(a, [-1, 2, 0, -2])\n"
     "u = $replication_pad2d_backward(t, a, [-1, 2, 0, -2])\nreturn (r, s, t, u)"},
    {"replication_pad of one element", "x: <f32[3, 1, 1, 1][1, 1, 1, 1]>",
     "r = $replication_pad3d(x, [0, 1, 0, 1, 0, 2])\ns = $replication_pad3d_backward(r, x, [0, 1, 0, 1, 0, 2])\n"
     "return (r, s)"},
    {"products of vectors",
     "m: <f32[7, 9][1, 7]>, v: <f32[9][1]>, w: <f32[7][1]>, i: <i64[7, 9][9, 1]>, j: <i64[9][1]>",
     "a = $mv(m, v)\nb = $addmv(w, m, v, beta=0.5, alpha=2)\nc = $addmv(w, m, v, beta=0)\nd = $addr(m, w, v, beta=2)\n"
     "e = $dot(v, v)\nf = $mv(i, j)\nh = $dot(j, j)\nreturn (a, b, c, d, e, f, h)"},
    {"reductions", pair,
     "l = $log(x)\na = $nansum(l)\nb = $nansum(l, [0], True)\nr = $relu(x)\nc = $count_nonzero(r)\n"
     "d = $count_nonzero.dim_IntList(r, [1])\np = $aminmax(x, dim=1)\ne = p[0]\nf = p[1]\nh = $norm.Scalar(x, 2)\n"
     "i = $norm.ScalarOpt_dim(x, None, [0])\nj = $norm.ScalarOpt_dim(x, 1.0, [1], True)\n"
     "return (a, b, c, d, e, f, h, i, j)"},
    {"slices along a dimension", "x: <f32[4, 6][6, 1]>, s: <f32[4, 5][5, 1]>, n: <f32[][]>",
     "a = $arange(5)\ni = $remainder.Scalar(a, 3)\nb = $index_add(x, 1, i, s, alpha=2)\nj = $mul.Scalar(a, 1)\n"
     "c = $index_copy(x, -1, j, s)\nd = $index_fill.int_Scalar(x, 1, i, 3)\nz = $select.int(i, 0, 0)\n"
     "e = $index_add(n, 0, z, n)\nf = $index_fill.int_Scalar(n, 0, z, 2.5)\nreturn (b, c, d, e, f)",
     2},  // slices of numbers
    {"scatter_reduce", "x: <f32[4, 6][6, 1]>, s: <f32[4, 5][5, 1]>, h: <bf16[4, 6][6, 1]>, t: <bf16[4, 5][5, 1]>",
     "a = $arange(20)\nb = $remainder.Scalar(a, 3)\ni = $reshape(b, [4, 5])\n"
     "c = $scatter_reduce.two(x, 1, i, s, 'sum')\nd = $scatter_reduce.two(x, 1, i, s, 'sum', include_self=False)\n"
     "e = $scatter_reduce.two(x, 1, i, s, 'mean')\nf = $scatter_reduce.two(x, 1, i, s, 'mean', include_self=False)\n"
     "j = $scatter_reduce.two(h, 1, i, t, 'sum', include_self=False)\nreturn (c, d, e, f, j)"},
    {"native_dropout", "x: <f32[40, 30][1, 40]>",
     "p = $native_dropout(x, 0.3, True)\na = p[0]\nb = p[1]\nq = $native_dropout(x, 0.3, False)\nc = q[0]\nd = q[1]\n"
     "r = $native_dropout(x, 1.0, True)\ne = r[0]\nf = $add.Tensor(a, x)\nreturn (a, b, c, d, e, f)",
     2},
};

}  // namespace

class TestLowerings : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void agree_data() {
    QTest::addColumn<int>("index");
    for (int i = 0; i < static_cast<int>(std::size(cases)); ++i) QTest::newRow(cases[i].name) << i;
  }
  void agree() {
    QFETCH(int, index);
    const auto graph = fx(cases[index].parameters, cases[index].lines);
    const auto known = propagate(*graph);
    QVERIFY2(known, known ? "" : known.error().line().c_str());
    const auto inputs = random_inputs(*graph, 3);
    QVERIFY2(inputs, inputs ? "" : inputs.error().line().c_str());
    const auto expected = interpret(*graph, *inputs);
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());

    PassContext context;
    const auto passed = post_grad_passes(*graph, context);
    QVERIFY2(passed, passed ? "" : passed.error().line().c_str());
    const auto plan = schedule::make_plan(*graph, {{}, codegen::host_target()});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    QCOMPARE(std::ranges::count_if(plan->steps,
                                   [](const auto& s) { return std::holds_alternative<schedule::ExternCall>(s); }),
             cases[index].calls);
    const auto compiled = codegen::compile_plan(*codegen::cpu_machine(), *plan, graph->attributes);
    QVERIFY2(compiled, compiled ? "" : compiled.error().line().c_str());
    const auto found = (*compiled)->run(*inputs);
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    QCOMPARE(found->size(), expected->size());
    for (std::size_t i = 0; i < expected->size(); ++i) {
      const Difference d =
          compare_values("output", (*expected)[i], (*found)[i], default_tolerance((*expected)[i].get<Tensor>()->dtype));
      QVERIFY2(d.ok(), qPrintable(QString("output %1: %2 of %3 differ").arg(i).arg(d.wrong).arg(d.numel)));
    }
  }
};

QTEST_MAIN(TestLowerings)
#include "test_lowerings.moc"
