// Whole graphs of the corpus: the plan must give the interpreter's values.
#include "tests/schedule/plan_test.h"
#include "tests/support/close.h"
#include "tests/support/corpus.h"
#include "tests/support/model_inputs.h"

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
    const auto file = corpus / "models" / path.toStdString();
    auto graph = testing::parse(testing::text_of(file));
    auto made_up = testing::model_inputs(file, *graph);
    QVERIFY2(made_up, made_up ? "" : made_up.error().line().c_str());
    const std::vector<Value>& inputs = *made_up;
    auto ours = testing::copies(inputs), wide_inputs = testing::copies(inputs);
    auto expected = interpret(*graph, inputs);
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    auto exact = interpret(*graph, wide_inputs, {.float64 = true});
    QVERIFY2(exact, exact ? "" : exact.error().line().c_str());
    const schedule::PlanOptions options;
    auto plan = schedule::make_plan(*graph, options);
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
      const std::string wrong = testing::wrong((*expected)[i], (*found)[i], {1e-4, 1e-4}, &(*exact)[i]);
      QVERIFY2(wrong.empty(), qPrintable(QString("output %1: %2").arg(i).arg(wrong.c_str())));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i)
      QCOMPARE(testing::wrong(inputs[i], ours[i], {1e-4, 1e-4}), std::string());
  }
};

}  // namespace partita

QTEST_MAIN(partita::Models)
#include "test_models.moc"
