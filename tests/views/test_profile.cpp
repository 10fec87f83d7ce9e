// The view of a measured run: rows, chosen steps, and the times that the nodes of a log get.
#include <fstream>

#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/profile/profile_controller.h"
#include "views/table/table_panel.h"

using namespace partita;
using namespace partita::tests;
using namespace partita::views;

namespace {

const QString kLog = QString(PARTITA_SOURCE_DIR) + "/tests/load/inductor.log";

/// Three steps of the log's code; the C++ kernels take 2, 3 and 4 microseconds in them.
void write_profile(const QString& path) {
  std::ofstream out(path.toStdString());
  const auto event = [&](const char* category, const std::string& name, int at, int length) {
    out << R"({"ph": "X", "cat": ")" << category << R"(", "name": ")" << name << R"(", "pid": 1, "tid": 1, "ts": )"
        << at << R"(, "dur": )" << length << "},\n";
  };
  out << "[\n";
  for (int step = 0; step < 3; ++step) {
    const int at = 1000 * step;
    event("user_annotation", "ProfilerStep#" + std::to_string(step), at, 900);
    event("user_annotation", "## Call CompiledFxGraph None ##", at + 10, 100);
    event("cpu_op", "aten::addmm", at + 20, 10);
    event("cpu_op", "graph_0_cpp_fused_gelu_0", at + 40, 2 + step);
    event("cpu_op", "aten::addmm", at + 60, 10);
  }
  out << R"({"ph": "M"}])";
}

}  // namespace

class TestProfile : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { write_profile(profile()); }

  void steps_are_chosen_by_mouse_and_keys() {
    StepStrip strip;
    strip.resize(400, 90);
    strip.show();
    QTest::keyClick(&strip, Qt::Key_Right);  // nothing there yet
    strip.set_steps({{"a", 0, 1, 0.5}, {"b", 1, 2, 0.7}, {"c", 2, 4, 0.1}});
    QCOMPARE(strip.chosen().to, 3u);
    QSignalSpy changed(&strip, &StepStrip::changed);
    QTest::mouseClick(&strip, Qt::LeftButton, {}, {150, 30});
    QCOMPARE(strip.chosen().from, 1u);
    QCOMPARE(strip.chosen().to, 2u);
    QTest::keyClick(&strip, Qt::Key_Right, Qt::ShiftModifier);
    QCOMPARE(strip.chosen().from, 1u);
    QCOMPARE(strip.chosen().to, 3u);
    QTest::keyClick(&strip, Qt::Key_Home);
    QCOMPARE(strip.chosen().to, 1u);
    QTest::keyClick(&strip, Qt::Key_A);
    QCOMPARE(strip.chosen().to, 3u);
    QCOMPARE(changed.count(), 4);
  }

  void a_kernel_of_a_folded_module_counts_once() {
    NodeFacts a, b, module;
    a.add_kernel("k", 2);
    b.add_kernel("k", 2);
    b.add_kernel("other", 1);
    module.add_times(a);
    module.add_times(b);
    QCOMPARE(b.seconds, 3.0);
    QCOMPARE(module.seconds, 3.0);
    NodeFacts measured;
    measured.seconds = 4;
    module.forget_times();
    module.add_times(measured);
    module.add_times(measured);
    QCOMPARE(module.seconds, 8.0);
  }

  void a_profile_gives_its_times_to_the_nodes() {
    Session bench(tools());
    bench.window().resize(1200, 800);
    bench.window().show();
    bench.documents().want("0_0.inductor_post_grad_graph");
    bench.documents().open(kLog);
    QVERIFY(wait_shown(bench));
    auto& controller = bench.views().get<ProfileController>();
    controller.show();
    controller.open(profile());
    const auto facts_of = [&](const char* node) -> NodeFacts {
      const Document* document = bench.documents().current_graph();
      const auto found = document ? document->facts.find(node) : Facts::const_iterator();
      return document && found != document->facts.end() ? found->second : NodeFacts();
    };
    QVERIFY(QTest::qWaitFor([&] { return facts_of("erf").seconds > 0; }, 30000));
    // One number for all that is fused, the median of the steps.
    QCOMPARE(facts_of("erf").seconds, 3e-6);
    QCOMPARE(facts_of("mul_1").kernel_times, facts_of("erf").kernel_times);
    QCOMPARE(facts_of("addmm").seconds, 1e-5);
    QVERIFY(!controller.view()->table()->model()->rows().empty());
    QVERIFY2(controller.view()->summary().startsWith("3 steps (by ProfilerStep)"),
             qPrintable(controller.view()->summary()));
    // Of the last step alone it is another.
    controller.view()->strip()->choose({2, 3});
    QVERIFY(QTest::qWaitFor([&] { return qFuzzyCompare(facts_of("erf").seconds, 4e-6); }, 30000));
    QVERIFY2(bench.command_line().endsWith("--steps 3-3"), qPrintable(bench.command_line()));
    // From a row to the node, in the graph that the kernel was made of.
    const auto& rows = controller.view()->table()->model()->rows();
    const auto row = std::ranges::find_if(rows, [](const Row& r) { return r.cells[7].text == "cpp_fused_gelu_0"; });
    QVERIFY(row != rows.end());
    Q_EMIT controller.view()->call_activated(static_cast<int>(row - rows.begin()));
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle() && !controller.on_screen(); }, 30000));
    QCOMPARE(bench.selection().spot().node, QString("mul_2"));
    // A closed log takes its times along.
    bench.documents().close_file(kLog);
    QVERIFY(controller.view()->table()->model()->rows().empty());
  }

  void what_is_no_profile_says_so() {
    Session bench(tools());
    bench.window().show();
    bench.documents().open(kLog);
    QVERIFY(wait_shown(bench));
    auto& controller = bench.views().get<ProfileController>();
    controller.open(kLog);
    QVERIFY(QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000));
    QVERIFY(controller.view()->summary().contains("could not be joined"));
  }

 private:
  QString profile() const { return folder_.filePath("profile.json"); }

  QTemporaryDir folder_;
};

QTEST_MAIN(TestProfile)
#include "test_profile.moc"
