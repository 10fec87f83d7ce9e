// Whole graphs of the corpus: the plan must give the interpreter's values.
#include <fstream>
#include <sstream>

#include "tests/schedule/plan_test.h"
#include "tests/support/corpus.h"

namespace partita {

class Models : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void run_data() {
    QTest::addColumn<QString>("path");
    for (const char* path :
         {"mlp/graphs/forward.py", "mlp/graphs/backward.py", "mlp/graphs/post_grad_0.py", "mlp/graphs/post_grad_1.py",
          "gpt2/graphs/forward.py", "gpt2/graphs/backward.py", "gpt2/graphs/post_grad_0.py",
          "gpt2/graphs/post_grad_1.py", "resnet/graphs/forward.py", "resnet/graphs/backward.py",
          "resnet/graphs/post_grad_0.py", "resnet/graphs/post_grad_1.py"})
      QTest::addRow("%s", path) << path;
  }
  void run() {
    QFETCH(QString, path);
    auto corpus = testing::corpus();
    if (corpus.empty()) QSKIP(testing::no_corpus);
    std::ifstream in(corpus / "models" / path.toStdString());
    std::stringstream text;
    text << in.rdbuf();
    auto graph = testing::parse(text.str());
    auto inputs = testing::random_inputs(*graph, 1, 8);
    auto ours = testing::copies(inputs), wide_inputs = testing::copies(inputs);
    auto expected = interpret(*graph, inputs);
    if (!expected && expected.error().code == "ops.unknown") QSKIP(expected.error().line().c_str());
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    auto exact = interpret(*graph, wide_inputs, {.float64 = true});
    QVERIFY2(exact, exact ? "" : exact.error().line().c_str());
    auto plan = schedule::make_plan(*graph);
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    int kernels = 0;
    for (const auto& step : plan->steps) kernels += std::holds_alternative<schedule::KernelCall>(step);
    qInfo("%d kernels, %d calls, arena %d KiB", kernels, static_cast<int>(plan->steps.size()) - kernels,
          static_cast<int>(plan->arena_bytes / 1024));
    if (std::getenv("PARTITA_TEST_PLAN")) puts(print(*plan).c_str());
    auto found = schedule::execute(*plan, graph->attributes, ours);
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    QCOMPARE(found->size(), expected->size());
    for (std::size_t i = 0; i < expected->size(); ++i) {
      // Sums of random inputs cancel, so the plan's rounding error may be a few times the interpreter's.
      double d = testing::difference((*found)[i], (*expected)[i]);
      double error = testing::difference((*found)[i], (*exact)[i], false),
             usual = testing::difference((*expected)[i], (*exact)[i], false);
      QVERIFY2(d < 1e-4 || error < 1e-5 + 10 * usual,
               qPrintable(
                   QString("output %1 differs by %2; error %3, interpreter's %4").arg(i).arg(d).arg(error).arg(usual)));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].get<Tensor>()) QVERIFY2(testing::difference(ours[i], inputs[i]) < 1e-3, "an input");
  }
};

}  // namespace partita

QTEST_MAIN(partita::Models)
#include "test_models.moc"
