// Compares each lowering with the operator's own evaluation on small random inputs, fused and not.
#include "tests/schedule/plan_test.h"

namespace partita {
namespace {

struct Case {
  const char* name;
  const char* arguments;
  std::vector<std::string> statements;
  bool in_loops = true;  ///< no call may remain
};

const std::vector<Case> cases = {
    {"add_broadcast", "x: 'f32[3, 4]', y: 'f32[4]'", {"a = torch.ops.aten.add.Tensor(x, y, alpha = 2)", "return (a,)"}},
    {"mixed_dtypes",
     "x: 'i64[3, 4]', y: 'f32[3, 1]'",
     {"a = torch.ops.aten.mul.Tensor(x, y)", "b = torch.ops.aten.gt.Scalar(a, 0)", "return (a, b)"}},
    {"bf16",
     "x: 'bf16[3, 4]', y: 'bf16[3, 4]'",
     {"a = torch.ops.aten.mul.Tensor(x, y)", "b = torch.ops.aten.sum.dim_IntList(a, [1])", "return (a, b)"}},
    {"transpose_add",
     "x: 'f32[3, 4]', y: 'f32[4, 3]'",
     {"t = torch.ops.aten.t.default(x)", "a = torch.ops.aten.add.Tensor(t, y)", "return (a,)"}},
    {"views",
     "x: 'f32[2, 3, 4]'",
     {"p = torch.ops.aten.permute.default(x, [2, 0, 1])", "v = torch.ops.aten.reshape.default(p, [4, 6])",
      "s = torch.ops.aten.slice.Tensor(v, 0, 1, 4, 2)", "u = torch.ops.aten.unsqueeze.default(s, 1)",
      "e = torch.ops.aten.expand.default(u, [2, 3, 6])", "k = torch.ops.aten.select.int(e, 1, -1)",
      "m = torch.ops.aten.neg.default(k)", "return (m, p, v)"}},
    {"split",
     "x: 'f32[2, 7]'",
     {"s = torch.ops.aten.split.Tensor(x, 3, 1)", "a = s[0]", "b = s[2]", "c = torch.ops.aten.mul.Tensor(a, b)",
      "return (c,)"}},
    {"split_sizes",
     "x: 'f32[2, 7]'",
     {"s = torch.ops.aten.split_with_sizes.default(x, [3, 3, 1], 1)", "a = s[0]", "b = s[1]",
      "c = torch.ops.aten.mul.Tensor(a, b)", "return (c,)"}},
    {"unbind",
     "x: 'f32[2, 3]'",
     {"s = torch.ops.aten.unbind.int(x, 1)", "a = s[0]", "b = s[2]", "c = torch.ops.aten.sub.Tensor(a, b)",
      "return (c,)"}},
    {"diagonal",
     "x: 'f32[3, 4]'",
     {"d = torch.ops.aten.diagonal.default(x, 1)", "c = torch.ops.aten.exp.default(d)", "return (c,)"}},
    {"as_strided",
     "x: 'f32[12]'",
     {"d = torch.ops.aten.as_strided.default(x, [3, 2], [4, 1], 1)", "c = torch.ops.aten.exp.default(d)",
      "return (c,)"}},
    {"flip_roll",
     "x: 'f32[3, 4]'",
     {"a = torch.ops.aten.flip.default(x, [1])", "b = torch.ops.aten.roll.default(a, [1, -1], [0, 1])",
      "c = torch.ops.aten.roll.default(x, [5], [])", "return (a, b, c)"}},
    {"repeat", "x: 'f32[3, 2]'", {"a = torch.ops.aten.repeat.default(x, [2, 2, 3])", "return (a,)"}},
    {"cat",
     "x: 'f32[3, 4]', y: 'f32[3, 2]', z: 'f32[0]'",
     {"n = torch.ops.aten.neg.default(y)", "a = torch.ops.aten.cat.default([x, n, z], 1)",
      "b = torch.ops.aten.exp.default(a)", "return (b,)"}},
    {"stack", "x: 'f32[3, 4]', y: 'f32[3, 4]'", {"a = torch.ops.aten.stack.default([x, y], 1)", "return (a,)"}},
    {"philox",
     "x: 'f32[3]'",
     {"s = torch.ops.aten.full.default([], 98765432109876, dtype = torch.int64)",
      "o = torch.ops.aten.full.default([], 8, dtype = torch.int64)",
      "p = torch.ops.rngprims.philox_rand.default([300, 999], s, o, None, device('cpu'), torch.float32)", "a = p[0]",
      "b = p[1]", "q = torch.ops.rngprims.philox_rand.default([7], s, o, None, device('cpu'), torch.float64)",
      "c = q[0]", "r = torch.ops.rngprims.philox_rand.default([7], s, o, None, device('cpu'), torch.float16)",
      "d = r[0]", "return (a, b, c, d)"}},
    {"pad", "x: 'f32[3, 4]'", {"a = torch.ops.aten.constant_pad_nd.default(x, [1, 2, -1, 1], 3.5)", "return (a,)"}},
    {"slice_scatter",
     "x: 'f32[3, 6]', y: 'f32[3, 2]'",
     {"a = torch.ops.aten.slice_scatter.default(x, y, 1, 1, 5, 2)", "return (a,)"}},
    {"select_scatter",
     "x: 'f32[3, 6]', y: 'f32[3]'",
     {"a = torch.ops.aten.select_scatter.default(x, y, 1, -2)", "return (a,)"}},
    {"slice_backward",
     "y: 'f32[3, 2]'",
     {"a = torch.ops.aten.slice_backward.default(y, [3, 6], 1, 1, 5, 2)", "return (a,)"}},
    {"select_backward", "y: 'f32[3]'", {"a = torch.ops.aten.select_backward.default(y, [3, 6], 1, 2)", "return (a,)"}},
    {"factories",
     "x: 'f32[3, 4]'",
     {"a = torch.ops.aten.full.default([3, 4], 2, dtype = torch.float32)",
      "b = torch.ops.aten.arange.start_step(0, 8, 2, dtype = torch.int64)", "c = torch.ops.aten.add.Tensor(a, b)",
      "d = torch.ops.aten.mul.Tensor(c, x)", "e = torch.ops.aten.zeros_like.default(x)", "return (d, e)"}},
    {"arange_float",
     "x: 'f32[4]'",
     {"b = torch.ops.aten.arange.start_step(0.5, 2.5, 0.5, dtype = torch.float32)",
      "c = torch.ops.aten.add.Tensor(b, x)", "return (c,)"}},
    {"triangles",
     "x: 'f32[2, 4, 4]'",
     {"a = torch.ops.aten.tril.default(x)", "b = torch.ops.aten.triu.default(x, 1)", "return (a, b)"}},
    {"copies",
     "x: 'f32[3, 4]'",
     {"a = torch.ops.aten.clone.default(x)", "b = torch.ops.aten._to_copy.default(x, dtype = torch.int64)",
      "return (a, b)"}},
    {"sum",
     "x: 'f32[3, 4, 5]'",
     {"a = torch.ops.aten.sum.default(x)", "b = torch.ops.aten.sum.dim_IntList(x, [1], True)",
      "c = torch.ops.aten.sum.dim_IntList(x, [0, 2])", "return (a, b, c)"}},
    {"sum_bool", "x: 'b8[3, 4]'", {"a = torch.ops.aten.sum.dim_IntList(x, [0])", "return (a,)"}},
    {"mean",
     "x: 'f32[3, 4, 5]'",
     {"a = torch.ops.aten.mean.default(x)", "b = torch.ops.aten.mean.dim(x, [-1, 0], True)", "return (a, b)"}},
    {"prod",
     "x: 'f32[3, 4]'",
     {"a = torch.ops.aten.prod.default(x)", "b = torch.ops.aten.prod.dim_int(x, 1)", "return (a, b)"}},
    {"extrema",
     "x: 'f32[3, 4]', y: 'i64[3, 4]'",
     {"a = torch.ops.aten.amax.default(x, [1])", "b = torch.ops.aten.amin.default(y, [0])",
      "c = torch.ops.aten.max.default(x)", "d = torch.ops.aten.max.dim(x, 1)", "e = d[0]", "f = d[1]",
      "return (a, b, c, e, f)"}},
    {"positions",
     "x: 'f32[3, 4]', y: 'i64[3, 4]'",
     {"a = torch.ops.aten.argmax.default(x, 1)", "b = torch.ops.aten.argmin.default(y)", "return (a, b)"}},
    {"logical",
     "x: 'b8[3, 4]', y: 'f32[3, 4]'",
     {"a = torch.ops.aten.any.dim(x, 1)", "b = torch.ops.aten.all.default(y)", "return (a, b)"}},
    {"moments",
     "x: 'f32[3, 40]'",
     {"a = torch.ops.aten.var_mean.correction(x, [1], correction = 0, keepdim = True)", "b = a[0]", "c = a[1]",
      "d = torch.ops.aten.var.correction(x, [0])", "return (b, c, d)"}},
    {"logsumexp", "x: 'f32[3, 4]'", {"a = torch.ops.aten.logsumexp.default(x, [1])", "return (a,)"}},
    {"softmax",
     "x: 'f32[3, 5]'",
     {"a = torch.ops.aten._softmax.default(x, 1, False)", "b = torch.ops.aten._softmax.default(x, 0, False)",
      "return (a, b)"}},
    {"safe_softmax", "x: 'f32[3, 5]'", {"a = torch.ops.aten._safe_softmax.default(x, 1)", "return (a,)"}},
    {"log_softmax",
     "x: 'f32[3, 5]', g: 'f32[3, 5]'",
     {"a = torch.ops.aten._log_softmax.default(x, 1, False)",
      "b = torch.ops.aten._log_softmax_backward_data.default(g, a, 1, torch.float32)", "return (a, b)"}},
    {"softmax_backward",
     "x: 'f32[3, 5]', g: 'f32[3, 5]'",
     {"b = torch.ops.aten._softmax_backward_data.default(g, x, 1, torch.float32)", "return (b,)"}},
    {"layer_norm",
     "x: 'f32[6, 2, 8]', w: 'f32[8]', b: 'f32[8]', g: 'f32[6, 2, 8]'",
     {"n = torch.ops.aten.native_layer_norm.default(x, [8], w, b, 1e-05)", "o = n[0]", "m = n[1]", "r = n[2]",
      "q = torch.ops.aten.native_layer_norm_backward.default(g, x, [8], m, r, w, b, [True, True, True])", "dx = q[0]",
      "dw = q[1]", "db = q[2]", "return (o, m, r, dx, dw, db)"}},
    {"group_norm",
     "x: 'f32[2, 4, 5]', w: 'f32[4]', b: 'f32[4]'",
     {"n = torch.ops.aten.native_group_norm.default(x, w, b, 2, 4, 5, 2, 1e-05)", "o = n[0]", "m = n[1]", "r = n[2]",
      "return (o, m, r)"}},
    {"batch_norm",
     "x: 'f32[3, 4, 5, 2]', w: 'f32[4]', b: 'f32[4]', rm: 'f32[4]', rv: 'f32[4]'",
     {"v = torch.ops.aten.abs.default(rv)",
      "n = torch.ops.aten._native_batch_norm_legit_functional.default(x, w, b, rm, v, True, 0.1, 1e-05)", "o = n[0]",
      "m = n[1]", "r = n[2]", "nm = n[3]", "nv = n[4]", "return (o, m, r, nm, nv)"}},
    {"batch_norm_inference",
     "x: 'f32[3, 4, 5, 2]', w: 'f32[4]', b: 'f32[4]', rm: 'f32[4]', rv: 'f32[4]'",
     {"v = torch.ops.aten.abs.default(rv)",
      "n = torch.ops.aten._native_batch_norm_legit_no_training.default(x, w, b, rm, v, 0.1, 1e-05)", "o = n[0]",
      "return (o,)"}},
    {"batch_norm_backward",
     "g: 'f32[3, 4, 5, 2]', x: 'f32[3, 4, 5, 2]', w: 'f32[4]', m: 'f32[4]', r: 'f32[4]'",
     {"q = torch.ops.aten.native_batch_norm_backward.default(g, x, w, None, None, m, r, True, 1e-05, [True, True, "
      "True])",
      "dx = q[0]", "dw = q[1]", "db = q[2]", "return (dx, dw, db)"}},
    {"mutation",
     "x: 'f32[4]', y: 'f32[4]'",
     {"a = torch.ops.aten.add.Tensor(x, y)", "b = torch.ops.aten.mul.Tensor(a, 2)",
      "c = torch.ops.aten.copy_.default(x, a)", "return (b,)"}},
    {"matmul",
     "x: 'f32[3, 4]', y: 'f32[5, 4]', b: 'f32[5]'",
     {"t = torch.ops.aten.t.default(y)", "a = torch.ops.aten.addmm.default(b, x, t)",
      "r = torch.ops.aten.relu.default(a)", "return (r,)"},
     false},
    {"batched",
     "x: 'f32[1, 3, 2, 4]', y: 'f32[2, 4, 3]'",
     {"p = torch.ops.aten.permute.default(x, [0, 2, 1, 3])", "e = torch.ops.aten.expand.default(p, [1, 2, 3, 4])",
      "c = torch.ops.aten.clone.default(e, memory_format = torch.contiguous_format)",
      "v = torch.ops.aten._unsafe_view.default(c, [2, 3, 4])", "m = torch.ops.aten.bmm.default(v, y)", "return (m,)"},
     false},
};

}  // namespace

class Families : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void lower_data() {
    QTest::addColumn<int>("row");
    QTest::addColumn<bool>("fuse");
    for (std::size_t i = 0; i < cases.size(); ++i)
      for (bool fuse : {true, false})
        QTest::addRow("%s%s", cases[i].name, fuse ? "" : " unfused") << static_cast<int>(i) << fuse;
  }
  void lower() {
    QFETCH(int, row);
    QFETCH(bool, fuse);
    const Case& c = cases[static_cast<std::size_t>(row)];
    auto graph = testing::parse(testing::module(c.arguments, c.statements));
    auto propagated = propagate(*graph);
    QVERIFY2(propagated, propagated ? "" : propagated.error().line().c_str());
    auto inputs = testing::random_inputs(*graph);
    auto ours = testing::copies(inputs);
    auto expected = interpret(*graph, inputs);
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    auto plan = schedule::make_plan(*graph, {.sizes = {}, .fuse = fuse});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    if (c.in_loops)
      for (const auto& step : plan->steps) QVERIFY(std::holds_alternative<schedule::KernelCall>(step));
    auto found = schedule::execute(*plan, graph->attributes, ours);
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    QCOMPARE(found->size(), expected->size());
    for (std::size_t i = 0; i < expected->size(); ++i) {
      double d = testing::difference((*found)[i], (*expected)[i]);
      QVERIFY2(d < 1e-5, qPrintable(QString("output %1 differs by %2\n%3").arg(i).arg(d).arg(print(*plan).c_str())));
      if (const Tensor* t = (*found)[i].get<Tensor>())
        for (std::size_t k = 0; k < t->sizes.size(); ++k)
          if (t->sizes[k] > 1) QCOMPARE(t->strides[k], (*expected)[i].get<Tensor>()->strides[k]);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].get<Tensor>()) QVERIFY(testing::difference(ours[i], inputs[i]) < 1e-5);
  }
};

}  // namespace partita

QTEST_MAIN(partita::Families)
#include "test_families.moc"
