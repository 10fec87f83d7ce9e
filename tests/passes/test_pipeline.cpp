#include <QtTest>

#include "core/passes/run_passes.h"
#include "tests/support/fx.h"

using namespace partita;
using partita::testing::body;
using partita::testing::fx;

namespace {

Result<bool> lies(Graph& graph, PassContext&) {
  graph.output()->previous()->set_op(Op::torch("aten.cos.default"));
  return false;
}
Result<bool> breaks_order(Graph& graph, PassContext&) {
  graph.move_before(graph.output()->previous(), graph.output()->previous()->previous());
  return true;
}
Result<bool> breaks_promise(Graph& graph, PassContext&) {
  graph.output()->previous()->meta.tensor()->dtype = DType::Float64;
  return true;
}
Result<bool> names_the_number(Graph& graph, PassContext&) {
  graph.output()->previous()->meta.tensor()->sizes[0] = 5;
  return true;
}
Result<bool> nothing(Graph&, PassContext&) {
  return false;
}
Result<bool> sin_to_cos(Graph& graph, PassContext&) {
  bool changed = false;
  for (Node* node : graph)
    if (node->is(Op::torch("aten.sin.default"))) {
      node->set_op(Op::torch("aten.cos.default"));
      changed = true;
    }
  return changed;
}

std::unique_ptr<Graph> sample() {
  return fx("x: <f32[2][1]>", "a: <f32[2][1]> = $neg(x)\nb: <f32[2][1]> = $sin(a)\nreturn (b,)");
}

}  // namespace

class TestPipeline : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void bugs_of_passes_are_reported_data() {
    QTest::addColumn<int>("which");
    QTest::addColumn<QString>("code");
    QTest::newRow("claims that nothing changed") << 0 << "pipeline.claim";
    QTest::newRow("uses a value before it is made") << 1 << "pipeline.verify";
    QTest::newRow("changes what an output is") << 2 << "pipeline.outputs";
  }
  void bugs_of_passes_are_reported() {
    QFETCH(int, which);
    QFETCH(QString, code);
    const PassFunction functions[] = {lies, breaks_order, breaks_promise};
    const Pass pass{functions[which], "planted", Stage::PostGradPasses, "a pass with a bug"};
    PassContext context;
    const auto graph = sample();
    const auto run = run_passes(*graph, {&pass, 1}, context);
    QVERIFY(!run);
    QCOMPARE(QString::fromStdString(run.error().code), code);
    QCOMPARE(run.error().exit_code(), 4);
    QVERIFY(run.error().message.starts_with("pass planted "));
  }

  void a_wrong_annotation_of_a_file_is_told_from_a_bug() {
    const Pass pass{breaks_promise, "planted", Stage::PreGradPasses, "finds another dtype"};
    PassContext context;
    const auto graph = sample();
    const auto run = run_passes(*graph, {&pass, 1}, context);
    QVERIFY(!run);
    QCOMPARE(QString::fromStdString(run.error().code), "pipeline.annotation");
    QCOMPARE(run.error().exit_code(), 2);
  }

  /// argwhere becomes nonzero of the same tensor, which has as many rows as the call before it.
  void two_sizes_may_be_found_equal() {
    const auto graph = fx("x: <f32[4][1]>",
                          "y: <f32[4][1]> = $neg(x)\na: <i64[u0, 1][1, u0]> = $nonzero(y)\n"
                          "b: <i64[u1, 1][1, u1]> = $argwhere(y)\nreturn (a, b)");
    PassContext context;
    const auto run = run_passes(*graph, passes_of(Stage::PostGradPasses), context);
    QVERIFY2(run, run ? "" : run.error().line().c_str());
    QVERIFY(body(*graph).find("argwhere") == std::string::npos);
  }

  /// A broadcast of s0 with 5 has either size, by a guard.
  void an_output_may_have_another_name_for_its_size() {
    for (const std::int64_t hint : {5, 7}) {
      const auto graph = fx("x: <f32[s0][1]>, w: <f32[5][1]>", "a: <f32[s0][1]> = $add.Tensor(x, w)\nreturn (a,)");
      graph->shapes->set_hint("s0", hint);
      const Pass pass{names_the_number, "named", Stage::PostGradPasses, "writes 5 for s0"};
      PassContext context;
      const auto run = run_passes(*graph, {&pass, 1}, context);
      QCOMPARE(bool(run), hint == 5);
      if (run) QCOMPARE(graph->shapes->guards().size(), std::size_t{1});
      if (!run) QCOMPARE(QString::fromStdString(run.error().code), "pipeline.outputs");
    }
  }

  /// PyTorch remembers how many distinct elements a tensor has, so both calls are annotated with one size.
  void one_annotated_size_may_be_two() {
    const auto graph = fx("x: <i64[4][1]>",
                          "a: <i64[u0][1]> = torch.functional.unique(x)\nb = torch.functional.unique(x, "
                          "return_counts = True)\nc: <i64[u0][1]> = b[0]\nd: <i64[u0][1]> = b[1]\nreturn (a, c, d)");
    PassContext context;
    const auto run = run_passes(*graph, passes_of(Stage::PreGradPasses), context);
    QVERIFY2(run, run ? "" : run.error().line().c_str());
  }

  void stop_after_disable_and_snapshots() {
    const Pass passes[] = {{nothing, "nothing", Stage::PostGradPasses, ""},
                           {sin_to_cos, "sin_to_cos", Stage::PostGradPasses, ""},
                           {nothing, "last", Stage::PostGradPasses, ""}};
    PassContext context;
    PipelineOptions options;
    options.snapshots = true;
    auto graph = sample();
    auto run = run_passes(*graph, passes, context, options);
    QVERIFY(run);
    QCOMPARE(run->passes.size(), std::size_t{3});
    QCOMPARE(run->passes[0].after.get(), run->before.get());
    QVERIFY(body(*run->before).find("sin") != std::string::npos);
    QVERIFY(body(*run->passes[1].after).find("cos") != std::string::npos);
    QCOMPARE(run->passes[2].after.get(), run->passes[1].after.get());

    options.stop_after = 1;
    graph = sample();
    run = run_passes(*graph, passes, context, options);
    QCOMPARE(run->passes.size(), std::size_t{1});
    QVERIFY(body(*graph).find("sin") != std::string::npos);

    options.stop_after = -1;
    options.disabled = {"sin_to_cos"};
    graph = sample();
    run = run_passes(*graph, passes, context, options);
    QVERIFY(run->passes[1].disabled && !run->passes[1].changed);
    QVERIFY(body(*graph).find("sin") != std::string::npos);
  }

  void passes_reach_sub_graphs() {
    const char* children =
        "\n    class true_graph_0(torch.nn.Module):\n        def forward(self, x: <f32[2][1]>):\n"
        "            s: <f32[2][1]> = $sin(x)\n            return (s,)\n"
        "\n    class false_graph_0(torch.nn.Module):\n        def forward(self, x: <f32[2][1]>):\n"
        "            s: <f32[2][1]> = $neg(x)\n            return (s,)\n";
    const auto graph = fx("p: <b8[][]>, x: <f32[2][1]>",
                          "true_graph_0 = self.true_graph_0\nfalse_graph_0 = self.false_graph_0\n"
                          "cond = torch.ops.higher_order.cond(p, true_graph_0, false_graph_0, (x,))\ng: <f32[2][1]> = "
                          "cond[0]\nreturn (g,)",
                          children);
    const Pass pass{sin_to_cos, "sin_to_cos", Stage::PostGradPasses, ""};
    PassContext context;
    const auto run = run_passes(*graph, {&pass, 1}, context);
    QVERIFY2(run, run ? "" : run.error().line().c_str());
    QVERIFY(run->passes[0].changed);
    QCOMPARE(body(*graph->child("true_graph_0")), std::string("s = torch.ops.aten.cos.default(x)\nreturn (s,)\n"));
  }

  void passes_make_the_first_of_their_rewrites() {
    const auto graph = fx("x: <f32[2][1]>",
                          "a: <f32[2][1]> = $mul.Tensor(x, 1)\nb: <f32[2][1]> = $div.Tensor(a, 1)\nc: <f32[2][1]> = "
                          "$neg(b)\nd: <f32[2][1]> = $neg(c)\ne: <f32[2][1]> = $sin(d)\nreturn (e,)");
    const auto before = graph->clone();
    std::vector<Pass> passes = passes_of(Stage::PostGradPasses);
    std::erase_if(passes, [](const Pass& p) { return p.name != "rewrite_post_grad"; });
    PassContext context;
    const auto run = run_passes(*graph, passes, context);
    QVERIFY(run);
    const std::vector<RewriteStep>& made = run->passes[0].rewrites;
    QCOMPARE(made.size(), std::size_t{3});
    QCOMPARE(made[0].rule + " " + made[0].node, std::string("mul_one a"));
    QCOMPARE(made[2].rule + " " + made[2].node, std::string("neg_neg d"));
    const char* bodies[] = {
        "a = $mul.Tensor(x, 1)\nb = $div.Tensor(a, 1)\nc = $neg(b)\nd = $neg(c)\ne = $sin(d)\nreturn (e,)\n",
        "b = $div.Tensor(x, 1)\nc = $neg(b)\nd = $neg(c)\ne = $sin(d)\nreturn (e,)\n",
        "c = $neg(x)\nd = $neg(c)\ne = $sin(d)\nreturn (e,)\n", "e = $sin(x)\nreturn (e,)\n"};
    for (std::size_t n = 0; n < 4; ++n) {
      const auto part = after_rewrites(*before, passes[0], context, n);
      QVERIFY(part);
      QCOMPARE(body(**part), testing::expand(bodies[n]));
    }
  }

  void order_and_all() {
    const auto names = [](const std::vector<Pass>& passes) {
      std::string text;
      for (const Pass& p : passes) text += std::string(p.name) + " ";
      return text;
    };
    const auto other = patched_config({{"pass_order", "remove_dead,share_common"}, {"disable_passes", "all"}});
    QVERIFY(other);
    const ConfigScope scope(*other);
    QCOMPARE(names(passes_of(Stage::PreGradPasses)),
             std::string("resolve_torch_calls rewrite_pre_grad remove_dead pack_linears share_common "));
    QCOMPARE(names(passes_of(Stage::Freezing)), std::string("fold_constants fold_into_weights remove_dead "));
    const PassNames off = configured_disabled();
    QVERIFY(off.contains("share_common") && !off.contains("decompose_composites") && !off.contains("all"));
    QVERIFY(check_pass_names(off));
    const ConfigScope wrong(*patched_config({{"pass_order", "no_such_pass"}}));
    QCOMPARE(check_pass_names({}).error().code, std::string("passes.name"));
  }

  void names_are_unique_within_a_stage() {
    for (const Pass& a : all_passes())
      for (const Pass& b : all_passes())
        if (&a != &b && a.stage == b.stage) QVERIFY2(a.name != b.name, std::string(a.name).c_str());
  }
};

QTEST_GUILESS_MAIN(TestPipeline)
#include "test_pipeline.moc"
