// Plans made for a machine: channels innermost between convolutions, work on rows of a result while they are in cache,
// stores that bypass the caches.
#include <fmt/format.h>

#include "codegen/cpu/cpu_machine.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/program/executable.h"
#include "tests/codegen/one_call.h"
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
    auto compiled = codegen::compile_plan(*codegen::cpu_machine(), *plan, graph.attributes);
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

  /// The graph's own numbers, NaN too.
  static void same_numbers(const Graph& graph, codegen::Executable& compiled) {
    auto inputs = testing::random_inputs(graph);
    for (const Value& v : inputs)  // whole numbers: sums are exact in any order
      for (float& x : std::span(v.get<Tensor>()->as<float>(), static_cast<std::size_t>(v.get<Tensor>()->numel())))
        x = std::round(x);
    for (int round = 0; round < 2; ++round) {
      auto got = compiled.run(inputs), want = interpret(graph, inputs);
      QVERIFY(got && want);
      const std::string wrong = testing::wrong(*(*want)[0].get<Tensor>(), *(*got)[0].get<Tensor>(), {0, 0});
      QVERIFY2(wrong.empty(), wrong.c_str());
      inputs[0].get<Tensor>()->as<float>()[3] = std::numeric_limits<float>::quiet_NaN();
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

  void work_after_a_convolution_is_done_by_rows_data() {
    QTest::addColumn<QString>("sizes");
    QTest::addColumn<QString>("weight");
    QTest::addColumn<QString>("rest");
    QTest::addColumn<int>("threads");
    QTest::addColumn<QString>("how");
    QTest::addColumn<QString>("how_simple");
    const auto both = [](const char* name, const char* sizes, const char* weight, const char* rest, int threads,
                         const char* how, const char* how_simple) {
      QTest::newRow(name) << sizes << weight << rest << threads << how << how_simple;
    };
    const auto row = [&](const char* name, const char* sizes, const char* weight, const char* rest, int threads,
                         const char* how) {
      // The second convolution's images have their channels innermost.
      const bool taps = testing::owns_changing_products() && QString(rest).endsWith(", 1");
      both(name, sizes, weight, rest, threads, how, taps ? "in registers" : how);
    };
    row("one thread", "[1, 12, 14, 16]", "[12, 12, 5, 5]", "[1, 1], [2, 2], [1, 1], False, [0, 0], 1", 1,
        "in blocks of 14 rows");
    row("a block for each thread", "[1, 12, 14, 16]", "[12, 12, 5, 5]", "[1, 1], [2, 2], [1, 1], False, [0, 0], 1", 2,
        "in blocks of 7 rows");
    row("images", "[4, 28, 5, 16]", "[28, 28, 3, 3]", "[1, 1], [1, 1], [1, 1], False, [0, 0], 1", 4,
        "in blocks of 5 rows");
    row("depthwise, dilated", "[1, 48, 20, 12]", "[48, 1, 3, 3]", "[1, 1], [2, 2], [2, 2], False, [0, 0], 48", 2,
        "in blocks of 10 rows");
    row("more padding than a block has rows", "[1, 16, 4, 12]", "[16, 16, 3, 3]",
        "[1, 1], [3, 3], [3, 3], False, [0, 0], 1", 4, "in blocks of 1 row");
    row("large images", "[1, 12, 120, 64]", "[12, 12, 5, 5]", "[1, 1], [2, 2], [1, 1], False, [0, 0], 1", 1,
        "in blocks of 60 rows");
    row("rows that threads cannot share", "[1, 12, 7, 8]", "[12, 12, 5, 5]", "[1, 1], [2, 2], [1, 1], False, [0, 0], 1",
        2, "a kernel of its own: 7 rows do not make equal blocks for 2 threads");
    if (testing::owns_changing_products())
      both("taps", "[2, 32, 20, 12][7680, 1, 384, 32]", "[32, 32, 5, 5]", "[1, 1], [2, 2], [1, 1], False, [0, 0], 1", 2,
           "in 2 blocks of rows", "in registers");
    if (!testing::own_kernels().empty()) {
      both("more products than one sum may have", "[1, 64, 14, 16]", "[64, 64, 3, 3]",
           "[1, 1], [1, 1], [1, 1], False, [0, 0], 1", 1,
           "a kernel of its own: blocks of rows would make one long sum for each element", "in registers");
      both("Winograd's algorithm", "[1, 32, 14, 16][7168, 1, 512, 32]", "[32, 32, 3, 3]",
           "[1, 1], [1, 1], [1, 1], False, [0, 0], 1", 1, "in 1 block of rows", "in registers");
      both("Winograd's algorithm, odd rows, threads", "[3, 64, 9, 7][4032, 1, 448, 64]", "[64, 64, 3, 3]",
           "[1, 1], [1, 1], [1, 1], False, [0, 0], 1", 2, "in 6 blocks of rows", "in registers");
      both("pixels by themselves", "[1, 32, 14, 16][7168, 1, 512, 32]", "[32, 32, 1, 1]",
           "[1, 1], [0, 0], [1, 1], False, [0, 0], 1", 2, "in 2 blocks of rows", "in registers");
      both("few pixels by themselves", "[1, 64, 5, 6][1920, 1, 384, 64]", "[64, 64, 1, 1]",
           "[1, 1], [0, 0], [1, 1], False, [0, 0], 1", 2,
           "a kernel of its own: threads share the product by columns, and the work by rows", "in registers");
      both("groups of few channels", "[2, 48, 20, 12][11520, 1, 576, 48]", "[48, 16, 3, 3]",
           "[1, 1], [1, 1], [1, 1], False, [0, 0], 3", 2, "in 2 blocks of rows", "in registers");
      both("depthwise", "[2, 48, 20, 12][11520, 1, 576, 48]", "[48, 1, 3, 3]",
           "[1, 1], [1, 1], [1, 1], False, [0, 0], 48", 2, "in 2 blocks of rows", "in registers");
    }
    row("a large weight", "[1, 480, 6, 6]", "[480, 24, 3, 3]", "[1, 1], [1, 1], [1, 1], False, [0, 0], 20", 2,
        "a kernel of its own: the weights, which each block would read, are larger than the result");
  }
  /// The same numbers as a kernel after the whole call gives, NaN too.
  void work_after_a_convolution_is_done_by_rows() {
    QFETCH(QString, sizes);
    QFETCH(QString, weight);
    QFETCH(QString, rest);
    QFETCH(int, threads);
    QFETCH(QString, how);
    QFETCH(QString, how_simple);
    if (codegen::host_target(1).channels_last.empty()) QSKIP("oneDNN prefers other layouts on this machine");
    const std::string conv = " = torch.ops.aten.convolution.default(", last = ", w, None, " + rest.toStdString() + ")";
    auto graph = testing::parse(testing::module(
        fmt::format("x: 'f32{}', w: 'f32{}', s: 'f32[{}, 1, 1]'", sizes.toStdString(), weight.toStdString(),
                    weight.mid(1).section(',', 0, 0).toStdString()),
        {"a" + conv + "x" + last, "b = torch.ops.aten.mul.Tensor(a, s)", "c = torch.ops.aten.relu.default(b)",
         "d" + conv + "c" + last, "e = torch.ops.aten.add.Tensor(d, c)", "f = torch.ops.aten.relu.default(e)",
         "g" + conv + "f" + last, "return (g,)"}));
    QVERIFY(propagate(*graph));
    auto plan = schedule::make_plan(*graph, {{}, codegen::host_target(threads)});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    auto compiled = codegen::compile_plan(*codegen::cpu_machine(), *plan, {}, {.fixed_inputs = {1}});
    QVERIFY2(compiled, compiled ? "" : compiled.error().line().c_str());
    QCOMPARE(QString::fromStdString((*compiled)->externs[0].work), how);
    QCOMPARE(QString::fromStdString((*compiled)->externs[1].work), how_simple);
    QVERIFY((*compiled)->externs[2].work.empty());
    same_numbers(*graph, **compiled);
  }

  /// A sum with another tensor, and bounds, are done by a product of our own on results in registers.
  void work_in_registers_data() {
    QTest::addColumn<Sizes>("sizes");  // rows, depth, columns
    QTest::addColumn<QString>("lines");
    QTest::addColumn<bool>("simple");
    const QString sum = "b = torch.ops.aten.add.Tensor(a, r)\n", relu = "c = torch.ops.aten.relu.default(%1)";
    const QString clamp = "c = torch.ops.aten.hardtanh.default(%1, -2.0, 3.0)";
    QTest::newRow("a bound") << Sizes{33, 40, 21} << relu.arg("a") << true;
    QTest::newRow("two bounds") << Sizes{5, 64, 96} << clamp.arg("a") << true;
    QTest::newRow("crossed bounds") << Sizes{5, 64, 96} << "c = torch.ops.aten.clamp.default(a, 3.0, -2.0)" << true;
    QTest::newRow("an infinite bound") << Sizes{5, 64, 96} << "c = torch.ops.aten.clamp.default(a, inf)" << true;
    QTest::newRow("a sum") << Sizes{70, 17, 50} << "c = torch.ops.aten.add.Tensor(r, a)" << true;
    QTest::newRow("a sum and a bound") << Sizes{300, 40, 33} << sum + relu.arg("b") << true;
    QTest::newRow("a deep product") << Sizes{9, 2100, 49} << sum + clamp.arg("b") << true;
    QTest::newRow("a bound first") << Sizes{9, 20, 49}
                                   << "b = torch.ops.aten.relu.default(a)\nc = torch.ops.aten.add.Tensor(b, r)"
                                   << false;
    QTest::newRow("twice a sum") << Sizes{9, 20, 49} << "c = torch.ops.aten.add.Tensor(a, r, alpha = 2)" << false;
    QTest::newRow("with itself") << Sizes{9, 20, 49} << "c = torch.ops.aten.add.Tensor(a, a)" << false;
  }
  void work_in_registers() {
    if (testing::own_kernels().empty()) QSKIP("our own products need AVX2");
    QFETCH(Sizes, sizes);
    QFETCH(QString, lines);
    QFETCH(bool, simple);
    std::vector<std::string> body = {"a = torch.ops.aten.addmm.default(s, x, w)"};
    for (const QString& line : lines.split('\n')) body.push_back(line.toStdString());
    body.emplace_back("return (c,)");
    const std::string inputs = fmt::format("x: 'f32[{0}, {1}]', w: 'f32[{1}, {2}]', s: 'f32[{2}]', r: 'f32[{0}, {2}]'",
                                           sizes[0], sizes[1], sizes[2]);
    auto graph = testing::parse(testing::module(inputs, body));
    QVERIFY(propagate(*graph));
    auto plan = schedule::make_plan(*graph, {{}, codegen::host_target(2)});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    auto compiled = codegen::compile_plan(*codegen::cpu_machine(), *plan, {}, {.fixed_inputs = {1}});
    QVERIFY2(compiled, compiled ? "" : compiled.error().line().c_str());
    QVERIFY((*compiled)->externs[0].library.starts_with("Partita"));
    QCOMPARE((*compiled)->externs[0].work == "in registers", simple);
    same_numbers(*graph, **compiled);
  }

  /// Sums of many rows to few columns or channels are made by all threads.
  void few_columns_are_shared_by_threads_data() {
    QTest::addColumn<QString>("x");
    QTest::addColumn<QString>("dims");
    QTest::newRow("columns") << "[4096, 64]" << "[0]";
    QTest::newRow("columns of two batches") << "[2, 1024, 64]" << "[0, 1]";
    QTest::newRow("channels of images") << "[4, 48, 20, 20]" << "[0, 2, 3]";
    QTest::newRow("channels innermost") << "[4, 48, 20, 20][19200, 1, 960, 48]" << "[0, 2, 3]";
  }
  void few_columns_are_shared_by_threads() {
    QFETCH(QString, x);
    QFETCH(QString, dims);
    auto graph = testing::parse(
        testing::module("x: 'f32" + x.toStdString() + "'",
                        {"s = torch.ops.aten.sum.dim_IntList(x, " + dims.toStdString() + ")", "return (s,)"}));
    QVERIFY(propagate(*graph));
    check(*graph, codegen::host_target(2), [](const schedule::Plan& plan) {
      const auto* outer = std::get_if<loops::Loop>(&plan.kernels.at(0).body.at(0));
      QVERIFY2(outer && outer->mapping == loops::Mapping::Thread, print(plan).c_str());
    });
  }

  void zeros_around_an_image_are_read_by_the_call_data() {
    QTest::addColumn<QString>("pad");
    QTest::addColumn<QString>("rest");
    QTest::addColumn<QString>("result");
    QTest::addColumn<std::vector<std::int64_t>>("around");
    const auto row = [](const char* name, const char* pad, const char* rest, const char* result,
                        std::vector<std::int64_t> around) { QTest::newRow(name) << pad << rest << result << around; };
    const char *plain = "[1, 1], [0, 0], [1, 1], False, [0, 0], 1", *alone = "(c,)";
    row("the same on all sides", "[1, 1, 1, 1]", plain, alone, {1, 1, 1, 1});
    row("more behind than before", "[0, 1, 2, 3], 0.0", "[2, 2], [0, 0], [1, 1], False, [0, 0], 1", alone,
        {0, 1, 2, 3});
    row("beside the call's own padding", "[0, 1]", "[1, 1], [1, 2], [1, 1], False, [0, 0], 1", alone, {0, 1});
    row("a transposed convolution, which is evaluated", "[1, 0, 2, 1]", "[1, 1], [0, 0], [1, 1], True, [0, 0], 1",
        alone, {1, 0, 2, 1});
    row("another constant", "[1, 1, 1, 1], 2", plain, alone, {});
    row("a part cut off", "[1, -1, 1, 1]", plain, alone, {});
    row("the padded image is returned, too", "[1, 1, 1, 1]", plain, "(c, p)", {});
    row("channels are added, too", "[1, 1, 1, 1, 8, 8]", plain, alone, {});
  }
  void zeros_around_an_image_are_read_by_the_call() {
    QFETCH(QString, pad);
    QFETCH(QString, rest);
    QFETCH(QString, result);
    QFETCH(std::vector<std::int64_t>, around);
    const std::string channels = pad.count(',') == 5 ? "32" : "16";
    auto graph = testing::parse(
        testing::module("x: 'f32[2, 16, 9, 8]', w: 'f32[" + channels + ", " + channels + ", 3, 3]'",
                        {"p = torch.ops.aten.constant_pad_nd.default(x, " + pad.toStdString() + ")",
                         "c = torch.ops.aten.convolution.default(p, w, None, " + rest.toStdString() + ")",
                         "return " + result.toStdString()}));
    QVERIFY(propagate(*graph));
    check(*graph, codegen::host_target(2), [&](const schedule::Plan& plan) {
      const auto* call = std::get_if<schedule::ExternCall>(&plan.steps.back());
      QVERIFY(call);
      QCOMPARE(call->around, around);
      QCOMPARE(plan.kernels.empty(), !around.empty());
      auto inputs = testing::random_inputs(*graph);
      auto want = interpret(*graph, inputs), got = schedule::execute(plan, {}, inputs);
      QVERIFY(want && got);
      const std::string wrong = testing::wrong((*want)[0], (*got)[0], {1e-5, 1e-5});
      QVERIFY2(wrong.empty(), wrong.c_str());
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
    auto compiled = codegen::compile_plan(*codegen::cpu_machine(), *plan, {}, {.fixed_inputs = {1}});
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
