// What fuses into one kernel, and what the arena saves.
#include "core/schedule/kernel_report.h"
#include "core/schedule/verify_plan.h"
#include "tests/schedule/plan_test.h"

namespace partita {
namespace {

struct Case {
  const char* name;
  const char* arguments;
  std::vector<std::string> statements;
  int kernels;
  int calls;
};

const std::vector<Case> cases = {
    {"pointwise_chain",
     "x: 'f32[64, 32]', y: 'f32[64, 32]', b: 'f32[32]'",
     {"m = torch.ops.aten.mul.Tensor(x, y)", "a = torch.ops.aten.add.Tensor(m, b)",
      "h = torch.ops.aten.gelu.default(a)", "s = torch.ops.aten.sigmoid.default(h)",
      "p = torch.ops.aten.mul.Tensor(s, h)", "d = torch.ops.aten.sub.Tensor(x, y)",
      "t = torch.ops.aten.tanh.default(d)", "q = torch.ops.aten.mul.Tensor(t, 0.5)",
      "r = torch.ops.aten.add.Tensor(p, q)", "return (r,)"},
     1,
     0},
    {"softmax", "x: 'f32[16, 32]'", {"a = torch.ops.aten._softmax.default(x, 1, False)", "return (a,)"}, 1, 0},
    {"masked_softmax",
     "x: 'f32[4, 16, 32]', m: 'b8[16, 32]'",
     {"f = torch.ops.aten.masked_fill.Scalar(x, m, -inf)", "a = torch.ops.aten._softmax.default(f, -1, False)",
      "return (a,)"},
     1,
     0},
    {"layernorm_gelu",
     "x: 'f32[64, 32]', r: 'f32[64, 32]', w: 'f32[32]', b: 'f32[32]'",
     {"s = torch.ops.aten.add.Tensor(x, r)", "n = torch.ops.aten.native_layer_norm.default(s, [32], w, b, 1e-05)",
      "o = n[0]", "g = torch.ops.aten.gelu.default(o)", "return (g,)"},
     1,
     0},
    {"heads_of_groups",  // the copies of expand need no memory
     "x: 'f32[1, 8, 32]', c: 'f32[1, 1, 8, 16]'",
     {"v = torch.ops.aten.view.default(x, [1, 8, 2, 16])", "t = torch.ops.aten.transpose.int(v, 1, 2)",
      "m = torch.ops.aten.mul.Tensor(t, c)", "u = torch.ops.aten.unsqueeze.default(m, 2)",
      "e = torch.ops.aten.expand.default(u, [1, 2, 3, 8, 16])",
      "k = torch.ops.aten.clone.default(e, memory_format = torch.contiguous_format)",
      "r = torch.ops.aten._unsafe_view.default(k, [1, 6, 8, 16])", "return (r,)"},
     1,
     0},
    {"layernorm_training",
     "x: 'f32[64, 32]', r: 'f32[64, 32]', w: 'f32[32]', b: 'f32[32]'",
     {"s = torch.ops.aten.add.Tensor(x, r)", "n = torch.ops.aten.native_layer_norm.default(s, [32], w, b, 1e-05)",
      "o = n[0]", "m = n[1]", "v = n[2]", "return (o, m, v, s)"},
     1,
     0},
    {"layernorm_backward",
     "g: 'f32[64, 32]', x: 'f32[64, 32]', m: 'f32[64, 1]', r: 'f32[64, 1]', w: 'f32[32]', b: 'f32[32]'",
     {"q = torch.ops.aten.native_layer_norm_backward.default(g, x, [32], m, r, w, b, [True, True, True])", "dx = q[0]",
      "dw = q[1]", "db = q[2]", "return (dx, dw, db)"},
     2,
     0},
    {"relu_backward_bias",
     "g: 'f32[64, 32]', y: 'f32[64, 32]'",
     {"z = torch.ops.aten.threshold_backward.default(g, y, 0)", "s = torch.ops.aten.sum.dim_IntList(z, [0], True)",
      "return (z, s)"},
     1,
     0},
    {"batch_norm_training",
     "x: 'f32[4, 8, 5, 2]', w: 'f32[8]', b: 'f32[8]', rm: 'f32[8]', rv: 'f32[8]'",
     {"n = torch.ops.aten._native_batch_norm_legit_functional.default(x, w, b, rm, rv, True, 0.1, 1e-05)", "o = n[0]",
      "y = torch.ops.aten.relu.default(o)", "nm = n[3]", "nv = n[4]", "c = torch.ops.aten.copy_.default(rm, nm)",
      "d = torch.ops.aten.copy_.default(rv, nv)", "return (y,)"},
     1,
     0},
    {"siblings",
     "x: 'f32[64, 32]'",
     {"a = torch.ops.aten.exp.default(x)", "b = torch.ops.aten.tanh.default(x)", "return (a, b)"},
     1,
     0},
    {"strangers",
     "x: 'f32[64, 32]', y: 'f32[64, 32]'",
     {"a = torch.ops.aten.exp.default(x)", "b = torch.ops.aten.tanh.default(y)", "return (a, b)"},
     2,
     0},
    {"after_a_product",
     "x: 'f32[8, 6]', w: 'f32[5, 6]', b: 'f32[5]', r: 'f32[2, 4, 5]'",
     {"t = torch.ops.aten.t.default(w)", "m = torch.ops.aten.addmm.default(b, x, t)",
      "v = torch.ops.aten.view.default(m, [2, 4, 5])", "g = torch.ops.aten.gelu.default(v)",
      "s = torch.ops.aten.add.Tensor(g, r)", "return (s,)"},
     0,
     1},
    {"around_a_call",
     "x: 'f32[8, 8]'",
     {"a = torch.ops.aten.exp.default(x)", "m = torch.ops.aten.mm.default(a, a)", "b = torch.ops.aten.add.Tensor(a, m)",
      "s = torch.ops.aten.sum.dim_IntList(b, [1])", "return (s,)"},
     2,
     1},
    {"cast_of_a_matrix",
     "x: 'f32[8, 6]', w: 'i8[5, 6]', b: 'f32[5]'",
     {"c = torch.ops.prims.convert_element_type.default(w, torch.float32)", "t = torch.ops.aten.t.default(c)",
      "m = torch.ops.aten.addmm.default(b, x, t)", "return (m,)"},
     0,
     1},
    {"cast_of_what_is_computed",
     "x: 'f32[8, 6]', w: 'i8[6, 5]'",
     {"n = torch.ops.aten.neg.default(w)", "c = torch.ops.prims.convert_element_type.default(n, torch.float32)",
      "m = torch.ops.aten.mm.default(x, c)", "return (m,)"},
     1,
     1},
    {"casts_one_after_the_other",
     "x: 'f32[8, 6]', w: 'i8[6, 5]'",
     {"b = torch.ops.prims.convert_element_type.default(w, torch.bool)",
      "c = torch.ops.prims.convert_element_type.default(b, torch.float32)", "m = torch.ops.aten.mm.default(x, c)",
      "return (m,)"},
     1,
     1},
    {"cast_that_rounds",
     "x: 'bf16[8, 6]', w: 'f16[6, 5]'",
     {"c = torch.ops.prims.convert_element_type.default(w, torch.bfloat16)", "m = torch.ops.aten.mm.default(x, c)",
      "return (m,)"},
     1,
     1},
};

int count_kernels(const schedule::Plan& plan) {
  return static_cast<int>(
      std::ranges::count_if(plan.steps, [](const auto& s) { return std::holds_alternative<schedule::KernelCall>(s); }));
}

loops::Target with_library() {
  loops::Target target;
  target.routines = {LibraryRoutine::Matmul, LibraryRoutine::AddMatmul};
  target.narrow_matrices = true;
  return target;
}

}  // namespace

class Fusion : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// Only a library's product does the work on its result.
  void without_a_routine_the_work_after_a_product_is_a_kernel() {
    auto graph =
        testing::parse(testing::module("x: 'f32[8, 8]'", {"m = torch.ops.aten.mm.default(x, x)",
                                                          "r = torch.ops.aten.relu.default(m)", "return (r,)"}));
    QVERIFY(propagate(*graph));
    for (const auto& [target, kernels] : {std::pair{loops::Target(), 1}, std::pair{with_library(), 0}}) {
      auto plan = schedule::make_plan(*graph, {{}, target});
      QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
      QVERIFY2(count_kernels(*plan) == kernels, print(*plan).c_str());
    }
  }

  void steps_data() {
    QTest::addColumn<int>("row");
    for (std::size_t i = 0; i < cases.size(); ++i) QTest::addRow("%s", cases[i].name) << static_cast<int>(i);
  }
  void steps() {
    QFETCH(int, row);
    const Case& c = cases[static_cast<std::size_t>(row)];
    auto graph = testing::parse(testing::module(c.arguments, c.statements));
    auto propagated = propagate(*graph);
    QVERIFY2(propagated, propagated ? "" : propagated.error().line().c_str());
    auto plan = schedule::make_plan(*graph, {{}, with_library()});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    QVERIFY2(count_kernels(*plan) == c.kernels, print(*plan).c_str());
    QCOMPARE(static_cast<int>(plan->steps.size()) - count_kernels(*plan), c.calls);
    auto inputs = testing::random_inputs(*graph);
    auto ours = testing::copies(inputs);
    auto expected = interpret(*graph, inputs);
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    auto found = schedule::execute(*plan, graph->attributes, ours);
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    for (std::size_t i = 0; i < expected->size(); ++i)
      QVERIFY2(testing::difference((*found)[i], (*expected)[i]) < 1e-5, print(*plan).c_str());
    for (std::size_t i = 0; i < inputs.size(); ++i) QVERIFY(testing::difference(ours[i], inputs[i]) < 1e-5);
  }

  // Every reader of an input gets the value from before the graph's copy_ to it.
  void reads_before_it_overwrites_data() {
    QTest::addColumn<QString>("lines");
    const auto row = [](const char* name, std::vector<const char*> calls) {
      QString text;
      for (const char* call : calls) text += QString(call).replace("$", "torch.ops.aten.") + '\n';
      QTest::addRow("%s", name) << text;
    };
    row("its own transpose", {"t = $t.default(x)", "a = $add.Tensor(x, t)", "c = $copy_.default(x, a)", "return ()"});
    row("two inputs that need each other",
        {"p = $mul.Tensor(x, y)", "a = $add.Tensor(x, p)", "b = $mul.Tensor(y, a)", "s = $sub.Tensor(x, b)",
         "c = $copy_.default(x, a)", "d = $copy_.default(y, b)", "return (s,)"});
    row("swapped", {"p = $clone.default(x)", "q = $clone.default(y)", "c = $copy_.default(x, q)",
                    "d = $copy_.default(y, p)", "return ()"});
    row("a mean of rows", {"m = $mean.dim(x, [0])", "a = $sub.Tensor(x, m)", "s = $_softmax.default(x, 1, False)",
                           "b = $mul.Tensor(s, a)", "c = $copy_.default(x, a)", "return (b, s)"});
    row("a softmax of the old rows", {"s = $_softmax.default(x, 1, False)", "a = $mul.Tensor(x, 2)",
                                      "b = $sub.Tensor(s, x)", "c = $copy_.default(x, a)", "return (b,)"});
    row("one for each row", {"m = $mean.dim(x, [1])", "a = $add.Tensor(z, m)", "u = $unsqueeze.default(z, 1)",
                             "b = $sub.Tensor(x, u)", "c = $copy_.default(z, a)", "return (b,)"});
    row("a product with an epilogue", {"m = $mm.default(x, y)", "a = $mul.Tensor(y, 0.5)", "e = $exp.default(a)",
                                       "r = $relu.default(m)", "c = $copy_.default(y, e)", "return (r,)"});
    row("a part of another input", {"r = $select.int(x, 0, 1)", "u = $mul.Tensor(x, 3)", "c = $copy_.default(z, r)",
                                    "d = $copy_.default(x, u)", "return ()"});
  }
  void reads_before_it_overwrites() {
    QFETCH(QString, lines);
    std::vector<std::string> statements;
    for (const QString& line : lines.split('\n', Qt::SkipEmptyParts)) statements.push_back(line.toStdString());
    auto graph = testing::parse(testing::module("x: 'f32[6, 6]', y: 'f32[6, 6]', z: 'f32[6]'", statements));
    auto propagated = propagate(*graph);
    QVERIFY2(propagated, propagated ? "" : propagated.error().line().c_str());
    const auto given = testing::random_inputs(*graph);
    auto expected_inputs = testing::copies(given);
    const auto expected = interpret(*graph, expected_inputs);
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    for (const bool fuse : {true, false}) {
      schedule::PlanOptions options;
      options.fuse = fuse;
      auto plan = schedule::make_plan(*graph, options);
      QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
      const std::vector<std::string> broken = schedule::verify(*plan);
      QVERIFY2(broken.empty(), broken.empty() ? "" : broken.front().c_str());
      auto ours = testing::copies(given);
      const auto found = schedule::execute(*plan, graph->attributes, ours);
      QVERIFY2(found, found ? "" : found.error().line().c_str());
      for (std::size_t i = 0; i < expected->size(); ++i)
        QVERIFY2(testing::difference((*found)[i], (*expected)[i]) < 1e-5, print(*plan).c_str());
      for (std::size_t i = 0; i < ours.size(); ++i)
        QVERIFY2(testing::difference(ours[i], expected_inputs[i]) < 1e-5, print(*plan).c_str());
    }
  }

  void a_read_of_an_overwritten_input_is_refused() {
    auto graph = testing::parse(testing::module(
        "x: 'f32[4]', y: 'f32[4]'", {"a = torch.ops.aten.exp.default(x)", "c = torch.ops.aten.copy_.default(x, a)",
                                     "b = torch.ops.aten.mul.Tensor(x, y)", "return (b,)"}));
    QVERIFY(propagate(*graph));
    const auto plan = schedule::make_plan(*graph);
    QVERIFY(!plan);
    QCOMPARE(plan.error().code, std::string("schedule.mutation"));
  }

  // A step that reads what another one made has a reason why they are apart, and each line of code has its nodes.
  void steps_apart_have_reasons() {
    std::set<std::string_view> reasons;
    for (const Case& c : cases) {
      auto graph = testing::parse(testing::module(c.arguments, c.statements));
      QVERIFY(propagate(*graph));
      auto plan = schedule::make_plan(*graph);
      QVERIFY(plan);
      const schedule::KernelReport report = schedule::kernel_report(*plan, "g");
      std::map<int, std::size_t> maker;
      for (std::size_t s = 0; s < report.rows.size(); ++s) {
        const schedule::KernelRow& row = report.rows[s];
        for (int b : row.reads) {
          const auto from = maker.find(b);
          if (from == maker.end() || std::ranges::find(row.writes, b) != row.writes.end()) continue;
          const auto pair = std::ranges::find_if(plan->apart, [&](const schedule::StepsApart& a) {
            return a.first == from->second && a.second > a.first && a.second <= s;
          });
          QVERIFY2(pair != plan->apart.end(), (std::string(c.name) + "\n" + print(*plan)).c_str());
        }
        for (int b : row.writes) maker[b] = s;
      }
      for (const schedule::StepsApart& pair : plan->apart) reasons.insert(reason(pair.why));
      for (const loops::Kernel& k : plan->kernels) {
        const loops::LinkedText text = print_linked(k);
        QCOMPARE(text.text, print(k));
        QCOMPARE(text.lines.size(), static_cast<std::size_t>(std::ranges::count(text.text, '\n')));
        std::set<int> met;
        for (const auto& line : text.lines) met.insert(line.begin(), line.end());
        for (int i : met) QVERIFY(i >= 0 && static_cast<std::size_t>(i) < k.origins.size());
        QVERIFY2(!met.empty() || k.body.empty(), text.text.c_str());
      }
    }
    QVERIFY(reasons.size() >= 2);
  }

  void a_report_counts_bytes_and_arithmetic() {
    auto graph = testing::parse(
        testing::module("x: 'f32[64, 32]', y: 'f32[32, 16]', b: 'f32[16]'",
                        {"m = torch.ops.aten.mm.default(x, y)", "s = torch.ops.aten.sum.dim_IntList(m, [0])",
                         "a = torch.ops.aten.add.Tensor(s, b)", "r = torch.ops.aten.div.Tensor(m, a)", "return (r,)"}));
    QVERIFY(propagate(*graph));
    auto plan = schedule::make_plan(*graph);
    QVERIFY(plan);
    const schedule::KernelReport report = schedule::kernel_report(*plan, "g");
    QCOMPARE(report.rows.front().name, std::string("mm"));
    QCOMPARE(report.rows.front().read, 4.0 * (64 * 32 + 32 * 16));
    QCOMPARE(report.rows.front().written, 4.0 * 64 * 16);
    const schedule::KernelRow& last = report.rows.back();
    QCOMPARE(last.written, 4.0 * 64 * 16);
    QVERIFY2(last.read >= 4.0 * (64 * 16 + 16) && last.read <= 4.0 * (64 * 16 + 64), print(*plan).c_str());
    QVERIFY(last.operations >= 64 * 16);
    // All that lives at the peak, and no more than the arena holds.
    const auto peak = report.peak();
    QVERIFY(peak);
    double held = 0;
    for (const schedule::BufferRow* b : report.live_at(*peak)) held += b->bytes;
    QCOMPARE(held, report.live[*peak]);
    QVERIFY(held > 0 && held <= report.arena_bytes);
  }

  void threads_share_the_columns_of_sums_at_indices() {
    auto graph = testing::parse(
        testing::module("g: 'f32[64, 48]', i: 'i64[64]'",
                        {"e = torch.ops.aten.embedding_dense_backward.default(g, i, 4, -1, False)", "return (e,)"}));
    QVERIFY(propagate(*graph));
    schedule::PlanOptions options;
    options.target.threads = 2;
    options.target.parallel_elements = 1024;
    auto plan = schedule::make_plan(*graph, options);
    QVERIFY(plan);
    const auto* outer = std::get_if<loops::Loop>(&plan->kernels.back().body.at(0));
    QVERIFY2(outer && outer->parallel() && outer->extent == SymExpr(2), print(*plan).c_str());
    auto inputs = testing::random_inputs(*graph);
    const auto expected = interpret(*graph, inputs);
    const auto found = schedule::execute(*plan, graph->attributes, inputs);  // finds races
    QVERIFY(expected && found);
    QVERIFY2(testing::difference((*found)[0], (*expected)[0]) < 1e-6, print(*plan).c_str());
  }

  // Sums along a row of images whose channels are innermost: the vector loops run along the channels, which are not the
  // results' last dimension.
  void columns_run_along_what_is_innermost_in_memory() {
    auto graph = testing::parse(testing::module("x: 'f32[2, 32, 6, 96][18432, 1, 3072, 32]'",
                                                {"s = torch.ops.aten.sum.dim_IntList(x, [3])", "return (s,)"}));
    QVERIFY(propagate(*graph));
    const auto plan = schedule::make_plan(*graph);
    QVERIFY(plan);
    const std::string text = print(plan->kernels.at(0));
    QVERIFY2(text.find("in 32 vector") != std::string::npos && text.find("in 6 vector") == std::string::npos,
             text.c_str());
    auto inputs = testing::random_inputs(*graph);
    const auto expected = interpret(*graph, inputs);
    const auto found = schedule::execute(*plan, graph->attributes, inputs);
    QVERIFY(expected && found);
    QVERIFY2(testing::difference((*found)[0], (*expected)[0]) < 1e-4, text.c_str());
  }

  // The gradient of a layer norm keeps neither what it normalises nor the scaled gradient in memory.
  void statistics_of_rows_do_not_make_a_value_worth_keeping() {
    const Case& c = *std::ranges::find(cases, std::string("layernorm_backward"), &Case::name);
    auto graph = testing::parse(testing::module(c.arguments, c.statements));
    QVERIFY(propagate(*graph));
    auto plan = schedule::make_plan(*graph);
    QVERIFY(plan);
    QVERIFY2(plan->arena_bytes < 4 * 64 * 32, print(*plan).c_str());
  }

  void a_softmax_keeps_its_row_in_scratch() {
    auto graph = testing::parse(
        testing::module("x: 'f32[16, 32]'", {"a = torch.ops.aten._softmax.default(x, 1, False)", "return (a,)"}));
    QVERIFY(propagate(*graph));
    auto plan = schedule::make_plan(*graph);
    QVERIFY(plan);
    std::string text = loops::print(plan->kernels.at(0));
    QVERIFY2(QString::fromStdString(text).count("Exp(") == 1, text.c_str());
    QCOMPARE(QString::fromStdString(text).count("scratch"), 1);
    QCOMPARE(plan->arena_bytes, std::size_t{0});
  }

  void temporaries_share_the_arena() {
    std::vector<std::string> lines{"a0 = torch.ops.aten.mm.default(x, x)"};
    for (int i = 1; i < 8; ++i)
      lines.push_back("a" + std::to_string(i) + " = torch.ops.aten.mm.default(a" + std::to_string(i - 1) + ", x)");
    lines.push_back("return (a7,)");
    auto graph = testing::parse(testing::module("x: 'f32[16, 16]'", lines));
    QVERIFY(propagate(*graph));
    auto plan = schedule::make_plan(*graph);
    QVERIFY(plan);
    // Seven temporaries of 1 KiB, two alive at a time; the eighth result is an output.
    QCOMPARE(plan->arena_bytes, std::size_t{2048});
  }

  void sizes_that_contradict_one_another() {
    // Text has no guards, so nothing says that s0 and s1 must be equal.
    auto graph = testing::parse(
        testing::module("x: \"f32[s0, 4][4, 1]cpu\", y: \"f32[s1, 4][4, 1]cpu\"",
                        {"a: \"f32[s0, 4][4, 1]cpu\" = torch.ops.aten.add.Tensor(x, y)", "return (a,)"}));
    QVERIFY(schedule::make_plan(*graph, {.sizes = {{"s0", 3}, {"s1", 3}}}));
    const auto plan = schedule::make_plan(*graph, {.sizes = {{"s0", 3}, {"s1", 5}}});
    QVERIFY(!plan);
    QCOMPARE(plan.error().exit_code(), 2);
    QCOMPARE(plan.error().where.node, std::string("a"));
  }
};

}  // namespace partita

QTEST_MAIN(partita::Fusion)
#include "test_fusion.moc"
