#include <QtTest>

#include "core/grad/joint.h"
#include "core/ir/print.h"
#include "core/ir/verify.h"
#include "core/load/fx_text.h"

using namespace partita;

namespace {

/// The joint graph of a forward whose first `wants` inputs require grad, with one line per call: "name = op(args)".
QString joint_of(const char* text, std::size_t wants) {
  auto graph = parse_fx_text(text);
  if (!graph) return QString::fromStdString(graph.error().line());
  auto functional = functionalize(**graph, {.requires_grad = std::vector<bool>(wants, true)});
  if (!functional) return QString::fromStdString(functional.error().line());
  auto joint = make_joint(std::move(*functional));
  if (!joint) return QString::fromStdString(joint.error().line());
  if (!verify(*joint->graph).empty()) return QString::fromStdString(verify(*joint->graph)[0].line());
  std::string out;
  for (Node* n : *joint->graph) {
    if (!n->op()->is_call()) continue;
    std::string args;
    for (const Arg& a : n->args()) args += (args.empty() ? "" : ", ") + print(a);
    out += n->name() + " = " + std::string(n->op()->brief()) + "(" + args + ")\n";
  }
  std::string returned;
  for (const Arg& a : joint->graph->outputs()) returned += (returned.empty() ? "" : ", ") + print(a);
  return QString::fromStdString(out + "return " + returned);
}

/// A cond over x and y whose true branch is `lines`.
QByteArray cond(const char* lines) {
  return QByteArray(
             "class G(torch.nn.Module):\n"
             "    def forward(self, x: \"f32[3][1]cpu\", y: \"f32[3][1]cpu\", p: \"b8[][]cpu\"):\n"
             "        t = self.t\n        f = self.f\n"
             "        c = torch.ops.higher_order.cond(p, t, f, (x, y))\n"
             "        r: \"f32[3][1]cpu\" = c[0]\n        return (r,)\n"
             "\n    class t(torch.nn.Module):\n"
             "        def forward(self, x: \"f32[3][1]cpu\", y: \"f32[3][1]cpu\"):\n") +
         lines +
         "\n    class f(torch.nn.Module):\n"
         "        def forward(self, x: \"f32[3][1]cpu\", y: \"f32[3][1]cpu\"):\n"
         "            mul = torch.ops.aten.mul.Tensor(x, y)\n            return (mul,)\n";
}

}  // namespace

class JointTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  // scatter reads the part of src that the index covers; PyTorch has a gradient only for a src of the index's size.
  void a_gradient_of_another_size_is_refused() {
    const QString found = joint_of(
        "class G(torch.nn.Module):\n    def forward(self, x: \"f32[4, 5][5, 1]cpu\", y: \"f32[4, 5][5, 1]cpu\", "
        "i: \"i64[4, 1][1, 1]cpu\"):\n        s = torch.ops.aten.scatter.src(x, 1, i, y)\n        return (s,)\n",
        2);
    QVERIFY2(found.contains("the gradient of 'src' has size [4, 1], the argument [4, 5]"), qPrintable(found));
  }

  // nll_loss depends on its weight, but PyTorch has no formula for that.
  void an_argument_without_a_derivative_is_refused() {
    const QString found = joint_of(
        "class G(torch.nn.Module):\n    def forward(self, x: \"f32[3, 4][4, 1]cpu\", w: \"f32[4][1]cpu\", "
        "t: \"i64[3][1]cpu\"):\n        l = torch.ops.aten.nll_loss_forward.default(x, t, w, 1, -100)\n"
        "        r: \"f32[][]cpu\" = l[0]\n        return (r,)\n",
        2);
    QVERIFY2(found.contains("the derivative for 'weight' of aten.nll_loss_forward.default, for which"),
             qPrintable(found));
  }

  void a_call_without_a_derivative_is_refused_data() {
    QTest::addColumn<QString>("call");
    QTest::newRow("floor_divide") << "r = torch.ops.aten.floor_divide.default(x, y)";
    QTest::newRow("embedding_bag") << "b = torch.ops.aten._embedding_bag_forward_only.default(m, i, i)\n"
                                      "        r: \"f32[4, 2][2, 1]cpu\" = b[0]";
    QTest::newRow("histogram") << "h = torch.ops.aten.histogram.bin_ct(x, 3)\n        r: \"f32[3][1]cpu\" = h[0]";
    QTest::newRow("heaviside") << "r = torch.ops.aten.heaviside.default(x, y)";
    QTest::newRow("unique") << "u = torch.ops.aten._unique2.default(x)\n        r: \"f32[u0][1]cpu\" = u[0]";
    QTest::newRow("bincount") << "r = torch.ops.aten.bincount.default(i, x)";
  }

  void a_call_without_a_derivative_is_refused() {
    QFETCH(QString, call);
    const QString found = joint_of(
        qPrintable("class G(torch.nn.Module):\n    def forward(self, x: \"f32[4][1]cpu\", y: \"f32[4][1]cpu\", "
                   "m: \"f32[5, 2][2, 1]cpu\", i: \"i64[4][1]cpu\"):\n        " +
                   call + "\n        return (r,)\n"),
        3);
    QVERIFY2(found.contains("has no derivative"), qPrintable(found));
  }

  void graphs_data() {
    QTest::addColumn<QString>("forward");
    QTest::addColumn<int>("wants");
    QTest::addColumn<QString>("joint");
    const QString head = "class GraphModule(torch.nn.Module):\n    def forward(self, ";
    QTest::newRow("other before self; sums arrive in argument order")
        << head +
               "x: \"f32[3][1]cpu\", y: \"f32[3][1]cpu\"):\n"
               "        mul = torch.ops.aten.mul.Tensor(x, x)\n"
               "        mul_1 = torch.ops.aten.mul.Tensor(mul, y)\n"
               "        return (mul_1,)\n"
        << 2
        << "mul = mul(primals_1, primals_1)\n"
           "mul_1 = mul(mul, primals_2)\n"
           "mul_2 = mul(tangents_1, mul)\n"
           "mul_3 = mul(tangents_1, primals_2)\n"
           "mul_4 = mul(mul_3, primals_1)\n"
           "mul_5 = mul(mul_3, primals_1)\n"
           "add = add(mul_5, mul_4)\n"
           "return mul_1, add, mul_2";
    QTest::newRow("a saved result is detached twice") << head +
                                                             "x: \"f32[3][1]cpu\"):\n"
                                                             "        tanh = torch.ops.aten.tanh.default(x)\n"
                                                             "        return (tanh,)\n"
                                                      << 1
                                                      << "tanh = tanh(primals_1)\n"
                                                         "detach = detach(tanh)\n"
                                                         "detach_1 = detach(detach)\n"
                                                         "tanh_backward = tanh_backward(tangents_1, detach_1)\n"
                                                         "return tanh, tanh_backward";
    QTest::newRow("broadcast gradients are summed back after the formulas")
        << head +
               "x: \"f32[4]\", y: \"f32[2, 4]\", z: \"f32[]\"):\n"
               "        add = torch.ops.aten.add.Tensor(x, y)\n"
               "        mul = torch.ops.aten.mul.Tensor(add, z)\n"
               "        return (mul,)\n"
        << 3
        << "add = add(primals_1, primals_2)\n"
           "mul = mul(add, primals_3)\n"
           "mul_1 = mul(tangents_1, add)\n"
           "mul_2 = mul(tangents_1, primals_3)\n"
           "sum_1 = sum(mul_1)\n"
           "sum_2 = sum(mul_2, [0], True)\n"
           "view = view(sum_2, [4])\n"
           "return mul, view, mul_2, sum_1";
    QTest::newRow("later calls first; inputs without grad give None")
        << head +
               "x: \"f32[2, 3]\", y: \"f32[3, 2]\"):\n"
               "        mm = torch.ops.aten.mm.default(x, y)\n"
               "        relu = torch.ops.aten.relu.default(mm)\n"
               "        sum_1 = torch.ops.aten.sum.default(relu)\n"
               "        return (sum_1, mm)\n"
        << 1
        << "mm = mm(primals_1, primals_2)\n"
           "relu = relu(mm)\n"
           "detach = detach(relu)\n"
           "sum_1 = sum(relu)\n"
           "expand = expand(tangents_1, [2, 2])\n"
           "detach_1 = detach(detach)\n"
           "threshold_backward = threshold_backward(expand, detach_1, 0)\n"
           "add = add(tangents_2, threshold_backward)\n"
           "t = t(primals_2)\n"
           "mm_1 = mm(add, t)\n"
           "return sum_1, mm, mm_1, None";
    QTest::newRow("no tangent where nothing requires grad") << head +
                                                                   "x: \"f32[2]\", i: \"i64[2]\"):\n"
                                                                   "        add = torch.ops.aten.add.Tensor(i, 1)\n"
                                                                   "        detach = torch.ops.aten.detach.default(x)\n"
                                                                   "        neg = torch.ops.aten.neg.default(detach)\n"
                                                                   "        return (add, neg)\n"
                                                            << 1
                                                            << "add = add(primals_2, 1)\n"
                                                               "detach = detach(primals_1)\n"
                                                               "neg = neg(detach)\n"
                                                               "return add, neg, None, None";
    QTest::newRow("windows that overlap add up; a permutation has no gradient")
        << head +
               "x: \"f32[4][1]cpu\", y: \"f32[2, 2][2, 1]cpu\"):\n"
               "        as_strided = torch.ops.aten.as_strided.default(x, [3, 2], [1, 1])\n"
               "        neg = torch.ops.aten.neg.default(as_strided)\n"
               "        linalg_lu = torch.ops.aten.linalg_lu.default(y)\n"
               "        getitem: \"f32[2, 2][2, 1]cpu\" = linalg_lu[0]\n"
               "        return (neg, getitem)\n"
        << 2
        << "as_strided = as_strided(primals_1, [3, 2], [1, 1])\n"
           "neg = neg(as_strided)\n"
           "linalg_lu = linalg_lu(primals_2)\n"
           "getitem = getitem(linalg_lu, 0)\n"
           "neg_1 = neg(tangents_1)\n"
           "new_zeros = new_zeros(neg_1, [4])\n"
           "arange = arange(0, 4)\n"
           "as_strided_1 = as_strided(arange, [3, 2], [1, 1], 0)\n"
           "view = view(neg_1, [-1])\n"
           "clone = clone(as_strided_1)\n"
           "_unsafe_view = _unsafe_view(clone, [6])\n"
           "index_add = index_add(new_zeros, 0, _unsafe_view, view)\n"
           "as_strided_2 = as_strided(index_add, [4], [1], 0)\n"
           "return neg, getitem, as_strided_2, None";
  }

  void graphs() {
    QFETCH(QString, forward);
    QFETCH(int, wants);
    QFETCH(QString, joint);
    QCOMPARE(joint_of(forward.toUtf8().constData(), static_cast<std::size_t>(wants)), joint);
  }

  /// As AOTAutograd writes it: the branches run again, and give the gradients of what they took.
  void condHasACondForItsBackward() {
    QCOMPARE(joint_of(cond("            exp = torch.ops.aten.exp.default(y)\n"
                           "            return (exp,)\n"),
                      2),
             QString("cond = cond(primals_3, true_graph_0, false_graph_0, (primals_1, primals_2))\n"
                     "getitem = getitem(cond, 0)\n"
                     "cond_1 = cond(primals_3, true_graph_1, false_graph_1, (primals_1, primals_2, tangents_1))\n"
                     "getitem_1 = getitem(cond_1, 0)\n"
                     "getitem_2 = getitem(cond_1, 1)\n"
                     "return getitem, getitem_1, getitem_2, None"));
  }
  void whatDrawsIsNotRunAgain() {
    QCOMPARE(joint_of(cond("            r = torch.ops.aten.rand_like.default(y)\n"
                           "            m = torch.ops.aten.mul.Tensor(x, r)\n"
                           "            return (m,)\n"),
                      2),
             QString("cond = cond(primals_3, true_graph_0, false_graph_0, (primals_1, primals_2))\n"
                     "getitem = getitem(cond, 0)\n"
                     "getitem_1 = getitem(cond, 1)\n"
                     "cond_1 = cond(primals_3, true_graph_1, false_graph_1, (primals_1, primals_2, tangents_1, "
                     "getitem_1))\n"
                     "getitem_2 = getitem(cond_1, 0)\n"
                     "getitem_3 = getitem(cond_1, 1)\n"
                     "return getitem, getitem_2, getitem_3, None"));
  }
  void checkpointsAreMarked() {
    auto graph = parse_fx_text(
        "class G(torch.nn.Module):\n    def forward(self, x: \"f32[3][1]cpu\"):\n"
        "        body_0 = self.body_0\n        body_1 = self.body_1\n"
        "        tag = torch.ops.higher_order.tag_activation_checkpoint(body_0, x, use_reentrant = False)\n"
        "        a: \"f32[3][1]cpu\" = tag[0]\n"
        "        tag_1 = torch.ops.higher_order.tag_activation_checkpoint(body_1, a, use_reentrant = False)\n"
        "        b: \"f32[3][1]cpu\" = tag_1[0]\n        return (b,)\n"
        "\n    class body_0(torch.nn.Module):\n        def forward(self, x: \"f32[3][1]cpu\"):\n"
        "            s: \"f32[3][1]cpu\" = torch.sin(x)\n            t: \"f32[3][1]cpu\" = s.exp()\n"
        "            return (t,)\n"
        "\n    class body_1(torch.nn.Module):\n        def forward(self, x: \"f32[3][1]cpu\"):\n"
        "            s: \"f32[3][1]cpu\" = torch.cos(x)\n            h: \"f32[3][1]cpu\" = torch.tanh(s)\n"
        "            inner = self.inner\n"
        "            tag = torch.ops.higher_order.tag_activation_checkpoint(inner, h, use_reentrant = False)\n"
        "            u: \"f32[3][1]cpu\" = tag[0]\n            return (u,)\n"
        "\n        class inner(torch.nn.Module):\n            def forward(self, x: \"f32[3][1]cpu\"):\n"
        "                s: \"f32[3][1]cpu\" = torch.sinh(x)\n                return (s,)\n");
    QVERIFY2(graph, graph ? "" : graph.error().line().c_str());
    auto functional = functionalize(**graph, {.requires_grad = {true}});
    QVERIFY2(functional, functional ? "" : functional.error().line().c_str());
    auto joint = make_joint(std::move(*functional));
    QVERIFY2(joint, joint ? "" : joint.error().line().c_str());
    QCOMPARE(joint->graph->find("sin")->recompute, Recompute::PreferRecompute);
    QCOMPARE(joint->graph->find("exp")->recompute, Recompute::MustSave);  // between two regions
    for (const char* name : {"cos", "tanh", "sinh"})  // the last two are on either side of a region within the second
      QCOMPARE(joint->graph->find(name)->recompute, Recompute::PreferRecompute);
  }

  void unknownOperatorIsNamed() {
    QVERIFY(joint_of("class G(torch.nn.Module):\n    def forward(self, x: \"f32[2]\"):\n"
                     "        igamma: \"c64[2]\" = torch.ops.aten._fft_r2c.default(x, [0], 0, True)\n"
                     "        return (igamma,)\n",
                     1)
                .contains("_fft_r2c"));
  }
};

QTEST_GUILESS_MAIN(JointTest)
#include "test_joint.moc"
