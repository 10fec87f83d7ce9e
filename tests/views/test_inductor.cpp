// The window says what PyTorch's inductor does wrong: verdict, evidence, colours, code, and what can be done next.
#include <QClipboard>
#include <QTest>

#include "tests/views/graphs.h"
#include "tests/views/workbench_tools.h"
#include "views/inductor/inductor_controller.h"
#include "views/minify/minify_controller.h"

using namespace partita;
using namespace partita::views;
using namespace partita::tests;

namespace {

/// As codegen/torch/worker/locating/report.py gives it.
nlohmann::json wrong_kernel() {
  return nlohmann::json::parse(R"({
    "verdict": "kernel", "sure": false, "reason": "it is only wrong with its neighbours",
    "kernel": {"name": "cpp_fused_gelu_1", "number": 2, "of": 5, "sure": true, "code": "cpp_fused_gelu_1 = 'for'"},
    "node": {"node": "mul_7", "op": "aten.mul.Tensor", "given": ["gelu"], "sure": false},
    "held": ["kernel_alone"],
    "evidence": [
      {"kernel": "cpp_fused_gelu_1:2", "buffer": "buf3", "node": "mul_7", "kind": "rms", "wrong": 2, "total": 512,
       "rms_ratio": 1234.5, "z": 3.5, "first_wrong": [{"index": [0, 3], "got": 0.5, "want": 0.25}]},
      {"kernel": "cpp_fused_gelu_1:2", "buffer": "buf4", "node": "sum", "kind": "nan", "rms_ratio": "nan"}],
    "buffers": [
      {"node": "mul_7", "given": ["gelu"], "kernel": "cpp_fused_gelu_1:2", "error": 0.25, "wrong": true},
      {"node": "addmm", "given": ["addmm"], "kernel": "extern_kernels.addmm:1", "error": 1e-7, "wrong": false}]})");
}

WorkbenchTools tools_that_find(std::vector<Located> found, LocateRequest* asked = nullptr) {
  WorkbenchTools t = tools();
  t.locate = [found, asked](const Artefact&, const LocateRequest& request,
                            const Progress&) -> Result<std::vector<Located>> {
    if (asked) *asked = request;
    return found;
  };
  t.python = [] { return Environment{"torch 2.13.0", "python3"}; };
  t.minifier = [](const Artefact&, const MinifyRequest&) -> Result<MinifyTool> {
    return input_error("test", "no minifier here");
  };
  return t;
}

bool wait_idle(Session& bench) {
  return QTest::qWaitFor([&] { return bench.jobs().idle(); }, 30000);
}

}  // namespace

class TestInductor : public QObject {
  Q_OBJECT

  TestFolder folder_;

 private Q_SLOTS:
  void initTestCase() { folder_.keep_settings_here(); }

  void a_report_is_told_in_words() {
    const Located found{"forward", wrong_kernel()};
    QCOMPARE(found.headline(), std::string("kernel 2 of 5, cpp_fused_gelu_1, is wrong"));
    QCOMPARE(found.certainty(),
             std::string("sure of the kernel, not of the node: it is only wrong with its neighbours"));
    const std::vector<Row> rows = wrong_buffer_rows(found);
    QCOMPARE(rows.size(), 2u);
    QCOMPARE(rows[0].node, QString("gelu"));
    QCOMPARE(rows[0].cells[1].text, QString("errors beyond rounding"));
    QCOMPARE(rows[0].cells[3].text, QString("2 of 512"));
    QCOMPARE(rows[0].cells[2].number, 1234.5);
    QCOMPARE(rows[0].cells[4].text, QString("[0, 3]: 0.5 in place of 0.25"));
    QVERIFY(rows[1].cells[2].text.isEmpty());  // a NaN has no ratio
    // A report that lacks everything says so, and does not fail.
    const Located none{"forward", nlohmann::json::parse(R"({"verdict": 3, "evidence": {}, "buffers": [1, null]})")};
    QVERIFY(!none.clean() && none.wrong_buffers().empty() && none.judged_nodes().empty());
  }

  void a_fault_is_coloured_and_its_code_shown() {
    LocateRequest asked;
    Session bench(tools_that_find({{"forward", wrong_kernel()}}, &asked));
    bench.window().show();
    bench.documents().open(folder_.write("located.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    auto& inductor = bench.views().get<InductorController>();
    inductor.view()->choose("torch:inductor+max_fusion_size=1");
    inductor.show();
    QVERIFY(wait_idle(bench));
    QCOMPARE(asked.against, std::string("torch:inductor+max_fusion_size=1"));
    QCOMPARE(inductor.view()->headline(), QString("Kernel 2 of 5, cpp_fused_gelu_1, is wrong"));
    QVERIFY(inductor.view()->facts().contains("in the graph: gelu"));
    const Facts& facts = bench.documents().current()->facts;
    QVERIFY(facts.at("gelu").wrong && facts.at("gelu").error == 0.25);
    QVERIFY(!facts.at("addmm").wrong && facts.at("addmm").error == 1e-7);
    QCOMPARE(picture(bench)->overlay(), OverlayKind::Error);
    QCOMPARE(bench.selection().spot().node, QString("gelu"));
    QCOMPARE(code(bench)->document()->text(), QString("cpp_fused_gelu_1 = 'for'"));
    QVERIFY(bench.command_line().startsWith("partita locate ") &&
            bench.command_line().contains("--random-weights 0 --against torch:inductor+max_fusion_size=1"));
    Q_EMIT inductor.view()->command_asked();
    QCOMPARE(QGuiApplication::clipboard()->text().section(' ', 0, 1), QString("partita locate"));
  }

  void the_code_of_the_graph_comes_back() {
    Session bench(tools_that_find({{"forward", wrong_kernel()}}));
    bench.window().show();
    bench.documents().open(folder_.write("back.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    const QString before = code(bench)->document()->text();
    auto& inductor = bench.views().get<InductorController>();
    inductor.show();
    QVERIFY(wait_idle(bench) && code(bench)->document()->text() != before);
    for (QPushButton* button : inductor.view()->findChildren<QPushButton*>())
      if (button->isCheckable()) button->click();
    QCOMPARE(code(bench)->document()->text(), before);
  }

  void the_first_wrong_graph_is_shown() {
    const nlohmann::json clean = {{"verdict", "clean"}, {"sure", true}};
    Session bench(tools_that_find({{"forward", clean}, {"backward", wrong_kernel()}}));
    bench.window().show();
    bench.documents().open(folder_.write("two.py", *tests::joint_graph(2)));
    QVERIFY(wait_shown(bench));
    auto& inductor = bench.views().get<InductorController>();
    inductor.show();
    QVERIFY(wait_idle(bench));
    QCOMPARE(inductor.view()->found()->graph, std::string("backward"));
    // Another graph that is found to be right shows nothing of the first.
    bench.documents().open(folder_.write("other.py", *tests::joint_graph(1)));
    QVERIFY(wait_shown(bench));
    QVERIFY(!inductor.view()->found() && inductor.view()->headline().isEmpty());
  }

  void an_error_is_said_and_the_python_named() {
    WorkbenchTools t = tools_that_find({});
    t.locate = [](const Artefact&, const LocateRequest&, const Progress&) -> Result<std::vector<Located>> {
      return input_error("torch.start", "python3 has no PyTorch");
    };
    Session bench(t);
    bench.window().show();
    bench.documents().open(folder_.write("none.py", *tests::joint_graph(1)));
    QVERIFY(wait_shown(bench));
    bench.views().get<InductorController>().show();
    QVERIFY(wait_idle(bench));
    QVERIFY(shown_errors(bench).contains("python3 has no PyTorch"));
    const QList<QLabel*> labels = bench.window().findChildren<QLabel*>();
    QVERIFY(std::ranges::any_of(labels, [](const QLabel* l) { return l->text() == "torch 2.13.0"; }));
  }
};

QTEST_MAIN(TestInductor)
#include "test_inductor.moc"
