// The window steps through passes and their rewrites.
#include <QTest>

#include <fmt/format.h>

#include "tests/support/fx.h"
#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/code/code_controller.h"
#include "views/graph/graph_controller.h"
#include "views/passes/passes_controller.h"
#include "views/window/window_session.h"

using namespace partita;
using namespace partita::views;
using namespace partita::tests;

class TestPassing : public QObject {
  Q_OBJECT

  TestFolder folder_;

 private Q_SLOTS:
  void initTestCase() { folder_.keep_settings_here(); }

  void passes_begin_as_compilers_do() {
    const auto graph = testing::fx("t: <f32[0][1]>, info: <i32[][]>",
                                   "w = torch.ops.higher_order.with_effects(t, "
                                   "torch.ops.aten._linalg_check_errors.default, info, 'inv', is_matrix = True)\n"
                                   "g: <f32[0][1]> = w[0]\nreturn (g,)");
    Session bench(tools());
    bench.documents().open(folder_.write("effects.py", *graph));
    QVERIFY(wait_shown(bench));
    bench.views().get<PassesController>().run();
    QVERIFY(QTest::qWaitFor([&] { return bench.views().get<PassesController>().view()->history() != nullptr; }, 30000));
    const PassHistory& history = *bench.views().get<PassesController>().view()->history();
    QVERIFY(!history.steps[0].graph->find("w") && history.steps[0].graph->find("_linalg_check_errors"));
  }

  void passes_are_stepped_through() {
    Session bench(tools());
    bench.window().show();
    bench.documents().open(folder_.write("passes.py", *tests::joint_graph(3)));
    QVERIFY(wait_shown(bench));
    bench.views().get<PassesController>().run();
    QVERIFY(QTest::qWaitFor([&] { return bench.views().get<PassesController>().view()->history() != nullptr; }, 30000));
    const PassHistory& history = *bench.views().get<PassesController>().view()->history();
    QVERIFY(history.steps.size() > 3);
    bench.views().get<PassesController>().view()->go_to(0);
    QCOMPARE(bench.views().get<PassesController>().view()->step(), 0);
    bench.views().get<PassesController>().view()->go_by(1, false);
    QCOMPARE(bench.views().get<PassesController>().view()->step(), 1);
    for (std::size_t i = 1; i < history.steps.size(); ++i)
      QCOMPARE(history.steps[i].diff != nullptr, history.steps[i].changed);
    QVERIFY(bench.command_line().startsWith("partita passes "));
    // Everything on the screen is of the step that is named above it.
    std::size_t changed = 1;
    while (!history.steps[changed].changed) ++changed;
    bench.views().get<PassesController>().view()->go_to(static_cast<int>(changed));
    QVERIFY(bench.window().windowTitle().contains("after " + history.steps[changed].name));
    QCOMPARE(code(bench)->document(), history.steps[changed].code.get());
    QVERIFY(!bench.views().get<GraphController>().bar()->budget()->isVisible());
    bench.views().show("graph");
    QVERIFY(!bench.window().windowTitle().contains("after "));
    QCOMPARE(code(bench)->document(), bench.documents().current()->code.get());
    QVERIFY(bench.views().get<GraphController>().bar()->budget()->isVisible());
  }

  void a_pass_opens_into_its_rewrites_and_is_skipped_for_a_try() {
    const Config before = config();
    Session bench(tools());
    bench.window().show();
    const auto graph = testing::fx("x: <f32[8][1]>",
                                   "a: <f32[8][1]> = $mul.Tensor(x, 1)\nb: <f32[8][1]> = $neg(a)\nc: <f32[8][1]> = "
                                   "$neg(b)\nd: <f32[8][1]> = $sin(c)\nreturn (d,)");
    bench.documents().open(folder_.write("rewrites.py", *graph));
    QVERIFY(wait_shown(bench));
    auto& passes = bench.views().get<PassesController>();
    passes.run(true);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && passes.view()->history(); }, 30000));
    const auto step_of = [&](const QString& name) {
      const auto& steps = passes.view()->history()->steps;
      return static_cast<int>(std::ranges::find(steps, name, &PassStep::name) - steps.begin());
    };
    const int pass = step_of("rewrite_post_grad");
    const std::size_t steps = passes.view()->history()->steps.size();
    // Each pass says how far it moved the results; which is not at all here.
    QCOMPARE(passes.view()->history()->steps[static_cast<std::size_t>(pass)].off_by, std::optional(0.0));
    passes.show_rewrites(pass);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(passes.view()->history()->steps.size(), steps + 2);
    QCOMPARE(passes.view()->step(), pass + 1);
    const auto shown = [&](int i) -> const PassStep& {
      return passes.view()->history()->steps[static_cast<std::size_t>(pass + i)];
    };
    QCOMPARE(shown(1).name, QString("1  mul_one at a"));
    QVERIFY(!shown(1).graph->find("a") && shown(1).graph->find("c"));
    QVERIFY(!shown(2).graph);  // drawn when it is chosen
    passes.view()->go_to(pass + 2);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && shown(2).graph; }, 30000));
    QVERIFY(!shown(2).graph->find("c"));
    QCOMPARE(passes.view()->step(), pass + 2);
    // What stays is where it was in the step before.
    const auto place = [&](int i, const char* key) {
      const Scene& scene = *shown(i).scene;
      const Box& box = scene.layout.boxes[static_cast<std::size_t>(scene.picture.card_by_key(key))];
      return QPointF(box.x, box.y);
    };
    QCOMPARE(place(2, "d"), place(1, "d"));
    QCOMPARE(place(1, "d"), place(0, "d"));
    passes.show_rewrites(pass);
    QCOMPARE(passes.view()->history()->steps.size(), steps);
    passes.skip("rewrite_post_grad");
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(passes.view()->history()->steps[static_cast<std::size_t>(pass)].disabled);
    QVERIFY(bench.command_line().contains("disable_passes=rewrite_post_grad"));
    passes.move("share_common", -1);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(step_of("share_common") + 1, step_of("undo_split_cat"));
    passes.reset();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QCOMPARE(step_of("share_common") - 1, step_of("undo_split_cat"));
    QVERIFY(config().disable_passes.empty() && config().pass_order.empty());
    set_config(before);
  }

  void every_rewrite_of_many_is_reached() {
    Session bench(tools());
    bench.window().show();
    constexpr int count = 260;
    std::string body = "n0: <f32[8][1]> = $mul.Tensor(x, 1)\n";
    for (int i = 1; i < count; ++i) body += fmt::format("n{}: <f32[8][1]> = $mul.Tensor(n{}, 1)\n", i, i - 1);
    body += fmt::format("s: <f32[8][1]> = $sin(n{})\nreturn (s,)", count - 1);
    bench.documents().open(folder_.write("many.py", *testing::fx("x: <f32[8][1]>", body)));
    QVERIFY(wait_shown(bench));
    auto& passes = bench.views().get<PassesController>();
    passes.run();
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && passes.view()->history(); }, 30000));
    const auto& before = passes.view()->history()->steps;
    const int pass =
        static_cast<int>(std::ranges::find(before, QString("rewrite_post_grad"), &PassStep::name) - before.begin());
    passes.show_rewrites(pass);
    passes.view()->go_to(pass + count);
    const auto last = [&]() -> const PassStep& {
      return passes.view()->history()->steps[static_cast<std::size_t>(pass + count)];
    };
    QVERIFY(last().rewrite);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && last().graph; }, 30000));
    QCOMPARE(last().name, QString("260  mul_one at n259"));
    QCOMPARE(last().graph->size(), std::size_t{3});
    QCOMPARE(last().diff->removed, 1);
    QVERIFY(bench.jobs().idle());
  }
};

QTEST_MAIN(TestPassing)
#include "test_passing.moc"
