// Whole graphs of the corpus, compiled: outputs and mutated inputs are the interpreter's.
#include <fstream>
#include <sstream>

#include "codegen/cpu/executable.h"
#include "tests/schedule/plan_test.h"
#include "tests/support/corpus.h"

namespace partita {

class CompiledModels : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void run_data() {
    QTest::addColumn<QString>("path");
    for (const char* model : {"mlp", "gpt2", "resnet"})
      for (const char* graph : {"forward", "backward", "inductor_decomp/forward", "inductor_decomp/backward", "post_grad_0", "post_grad_1"})
        QTest::addRow("%s %s", model, graph) << QString("%1/graphs/%2.py").arg(model, graph);
  }
  void run() {
    QFETCH(QString, path);
    auto corpus = testing::corpus();
    if (corpus.empty()) QSKIP(testing::no_corpus);
    std::ifstream in(corpus / "models" / path.toStdString());
    std::stringstream text;
    text << in.rdbuf();
    auto graph = testing::parse(text.str());
    // Text has no metas for tuples.
    auto propagated = propagate(*graph);
    QVERIFY2(propagated, propagated ? "" : propagated.error().line().c_str());
    auto inputs = testing::random_inputs(*graph, 1, 8);
    auto ours = testing::copies(inputs), again = testing::copies(inputs);
    auto plan = schedule::make_plan(*graph);
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    auto compiled = codegen::compile_cpu(*plan, graph->attributes, {.threads = 2, .keep_text = std::getenv("PARTITA_TEST_ASSEMBLY") != nullptr});
    QVERIFY2(compiled, compiled ? "" : compiled.error().line().c_str());
    const codegen::CompileTimes& t = (*compiled)->times;
    qInfo("%zu kernels, %zu calls; emit %.1f optimise %.1f generate %.1f, by the clock %.1f, link %.1f, calls %.1f, in all %.1f ms", plan->kernels.size(),
          (*compiled)->externs.size(), t.emit_ms, t.optimise_ms, t.generate_ms, t.compile_ms, t.link_ms, t.prepare_ms, t.total_ms);
    for (const codegen::ExternReport& e : (*compiled)->externs)
      if (e.library == "interpreter") qInfo("interpreted: %s %s %s", e.node.c_str(), e.op.c_str(), e.why_not.c_str());
    if (std::getenv("PARTITA_TEST_PLAN")) puts(print(*plan).c_str());
    if (std::getenv("PARTITA_TEST_ASSEMBLY")) puts((*compiled)->ir.c_str());

    auto expected = interpret(*graph, inputs);
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    for (int round = 0; round < 2; ++round) {
      auto found = (*compiled)->run(round == 0 ? ours : again);
      QVERIFY2(found, found ? "" : found.error().line().c_str());
      QCOMPARE(found->size(), expected->size());
      for (std::size_t i = 0; i < expected->size(); ++i) {
        double d = testing::difference((*found)[i], (*expected)[i]);
        QVERIFY2(d < 1e-3, qPrintable(QString("output %1 differs by %2").arg(i).arg(d)));
      }
    }
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].get<Tensor>()) QVERIFY2(testing::difference(ours[i], inputs[i]) < 1e-3, "an input");
  }
};

}  // namespace partita

QTEST_GUILESS_MAIN(partita::CompiledModels)
#include "test_models.moc"
