// Plans made for a machine: channels innermost between convolutions, stores that bypass the caches.
#include "codegen/cpu/executable.h"
#include "codegen/cpu/host.h"
#include "tests/schedule/plan_test.h"
#include "tests/support/close.h"

namespace partita {

class MachinePlans : public QObject {
  Q_OBJECT

  /// Checks that the graph, planned for the target and compiled, gives the interpreter's values and strides. The inputs
  /// are small whole numbers, so that sums are exact in any order and every value is equal.
  void check(const Graph& graph, const loops::Target& target, const std::function<void(const schedule::Plan&)>& see) {
    auto plan = schedule::make_plan(graph, {{}, target});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    see(*plan);
    auto inputs = testing::random_inputs(graph);
    for (const Value& v : inputs)
      for (float& x : std::span(v.get<Tensor>()->as<float>(), static_cast<std::size_t>(v.get<Tensor>()->numel())))
        x = std::round(x);
    auto expected = interpret(graph, testing::copies(inputs));
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    auto compiled = codegen::compile_cpu(*plan, graph.attributes);
    QVERIFY2(compiled, compiled ? "" : compiled.error().line().c_str());
    for (int round = 0; round < 2; ++round) {
      auto found = (*compiled)->run(inputs);
      QVERIFY2(found, found ? "" : found.error().line().c_str());
      for (std::size_t i = 0; i < expected->size(); ++i) {
        const Tensor &ours = *(*found)[i].get<Tensor>(), &wanted = *(*expected)[i].get<Tensor>();
        const std::string wrong = testing::wrong(wanted, ours, {0, 0});
        QVERIFY2(wrong.empty(), (wrong + print(*plan)).c_str());
        QVERIFY(ours.strides == wanted.strides);
      }
    }
  }

 private Q_SLOTS:
  void the_cache_size_is_known() { QVERIFY(codegen::host_target().cache_bytes >= 1 << 18); }

  void an_epilogue_walks_channels_last_memory() {
    const std::string rest = ", None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)";
    auto graph = testing::parse(
        testing::module("x: 'f32[2, 7, 9, 11]', w: 'f32[7, 7, 3, 3]', s: 'f32[7, 1, 1]'",
                        {"a = torch.ops.aten.convolution.default(x, w" + rest, "b = torch.ops.aten.mul.Tensor(a, s)",
                         "c = torch.ops.aten.relu.default(b)", "d = torch.ops.aten.convolution.default(c, w" + rest,
                         "e = torch.ops.aten.add.Tensor(d, c)", "f = torch.ops.aten.relu.default(e)",
                         "g = torch.ops.aten.convolution.default(f, w" + rest, "return (g,)"}));
    QVERIFY(propagate(*graph));
    loops::Target target = codegen::host_target(2);
    target.channels_last = {DType::Float32};
    target.cache_bytes = 0;
    check(*graph, target, [](const schedule::Plan& plan) {
      int innermost = 0;
      for (const auto& step : plan.steps)
        if (auto* call = std::get_if<schedule::ExternCall>(&step)) innermost += call->results[0].strides[1].is(1);
      QCOMPARE(innermost, 2);
    });
  }

  void a_weight_that_the_graph_writes_is_not_packed_once() {
    auto graph =
        testing::parse(testing::module("x: 'f32[8, 32]', w: 'f32[32, 48]'",
                                       {"y = torch.ops.aten.mm.default(x, w)", "v = torch.ops.aten.mul.Tensor(w, 2)",
                                        "c = torch.ops.aten.copy_.default(w, v)", "return (y,)"}));
    QVERIFY(propagate(*graph));
    auto plan = schedule::make_plan(*graph);
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    auto compiled = codegen::compile_cpu(*plan, {}, {.fixed_inputs = {1}});
    QVERIFY2(compiled, compiled ? "" : compiled.error().line().c_str());
    auto inputs = testing::random_inputs(*graph);
    auto first = (*compiled)->run(inputs), second = (*compiled)->run(inputs);
    QVERIFY(first && second);
    for (std::int64_t i = 0; i < 8 * 48; ++i)
      QCOMPARE((*second)[0].get<Tensor>()->as<float>()[i], 2 * (*first)[0].get<Tensor>()->as<float>()[i]);
  }

  void large_results_are_streamed_data() {
    QTest::addColumn<QString>("sizes");
    QTest::addColumn<QStringList>("statements");
    QTest::addColumn<bool>("streamed");
    QTest::addRow("whole vectors") << "64, 256" << QStringList{"a = torch.ops.aten.add.Tensor(x, y)"} << true;
    QTest::addRow("rows that end within a vector")
        << "61, 67" << QStringList{"a = torch.ops.aten.mul.Tensor(x, y)"} << true;
    QTest::addRow("rows that begin within a line")
        << "128, 100"
        << QStringList{"c = torch.ops.aten.slice.Tensor(y, 1, 0, 1)", "a = torch.ops.aten.sub.Tensor(x, c)"} << true;
    QTest::addRow("half precision") << "64, 200"
                                    << QStringList{"c = torch.ops.aten.add.Tensor(x, y)",
                                                   "a = torch.ops.aten._to_copy.default(c, dtype=torch.bfloat16)"}
                                    << true;
    QTest::addRow("a small result") << "64, 256" << QStringList{"a = torch.ops.aten.sum.dim_IntList(x, [1])"} << false;
  }
  void large_results_are_streamed() {
    QFETCH(QString, sizes);
    QFETCH(QStringList, statements);
    QFETCH(bool, streamed);
    std::vector<std::string> lines;
    for (const QString& s : statements) lines.push_back(s.toStdString());
    lines.emplace_back("return (a,)");
    const std::string annotation = "'f32[" + sizes.toStdString() + "]'";
    auto graph = testing::parse(testing::module("x: " + annotation + ", y: " + annotation, lines));
    QVERIFY(propagate(*graph));
    loops::Target target = codegen::host_target(2);
    target.cache_bytes = 1 << 12;
    check(*graph, target, [&](const schedule::Plan& plan) {
      bool any = false;
      for (const loops::Kernel& k : plan.kernels)
        for (const loops::Buffer& b : k.buffers) any = any || b.streamed;
      QVERIFY2(any == streamed, print(plan).c_str());
    });
  }
};

}  // namespace partita

QTEST_GUILESS_MAIN(partita::MachinePlans)
#include "test_machine.moc"
