// Whole graphs of the corpus, compiled: outputs and mutated inputs must be the interpreter's.
#include "codegen/cpu/cpu_machine.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/program/executable.h"
#include "core/loops/execute.h"
#include "tests/codegen/run_kernel.h"
#include "tests/schedule/plan_test.h"
#include "tests/support/close.h"
#include "tests/support/corpus.h"
#include "tests/support/model_inputs.h"

namespace partita {

class CompiledModels : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void run_data() {
    QTest::addColumn<QString>("path");
    for (const char* model : {"mlp", "gpt2", "resnet"})
      for (const char* graph :
           {"forward", "backward", "inductor_decomp/forward", "inductor_decomp/backward", "post_grad_0", "post_grad_1"})
        QTest::addRow("%s %s", model, graph) << QString("%1/graphs/%2.py").arg(model, graph);
  }
  void each_kernel_data() { run_data(); }
  /// Runs each kernel of the plans alone, and compares it with the reference executor on random memory.
  void each_kernel() {
    QFETCH(QString, path);
    auto corpus = testing::corpus();
    if (corpus.empty()) QSKIP(testing::no_corpus);
    auto graph = testing::parse(testing::text_of(corpus / "models" / path.toStdString()));
    auto propagated = propagate(*graph);
    QVERIFY2(propagated, propagated ? "" : propagated.error().line().c_str());
    auto plan = schedule::make_plan(*graph, {{}, codegen::host_target(2)});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    for (const loops::Kernel& k : plan->kernels) {
      std::vector<Tensor> ours, reference;
      std::uint32_t seed = 1;
      for (const loops::Buffer& b : k.buffers) {
        if (b.role == loops::Buffer::Role::Scratch) continue;
        Tensor t = *Tensor::empty(b.dtype, {b.elements.as_int()});
        std::mt19937 rng(seed++);
        std::normal_distribution<double> normal;
        Tensor wide = *Tensor::empty(DType::Float64, t.sizes);
        for (std::int64_t i = 0; i < t.numel(); ++i)
          wide.as<double>()[i] = is_floating(b.dtype) ? normal(rng) : static_cast<double>(rng() % 2);
        t.copy_from(wide);
        reference.push_back(*t.clone());
        ours.push_back(std::move(t));
      }
      auto pointers = [](std::vector<Tensor>& ts) {
        std::vector<void*> p;
        for (Tensor& t : ts) p.push_back(t.data());
        return p;
      };
      auto done = loops::execute(k, pointers(reference));
      QVERIFY2(done, done ? "" : done.error().line().c_str());
      auto compiled = codegen::compile(k);
      codegen::run(compiled, pointers(ours), {}, 2);
      std::size_t b = 0;
      for (const loops::Buffer& buffer : k.buffers) {
        if (buffer.role == loops::Buffer::Role::Scratch) continue;
        const std::string wrong = testing::wrong(reference[b], ours[b], {1e-3, 1e-3});
        QVERIFY2(wrong.empty(), (buffer.name + ": " + wrong + loops::print(k)).c_str());
        ++b;
      }
    }
  }
  void run() {
    QFETCH(QString, path);
    auto corpus = testing::corpus();
    if (corpus.empty()) QSKIP(testing::no_corpus);
    const auto file = corpus / "models" / path.toStdString();
    auto graph = testing::parse(testing::text_of(file));
    // Text has no metas of tuples.
    auto propagated = propagate(*graph);
    QVERIFY2(propagated, propagated ? "" : propagated.error().line().c_str());
    const auto made_up = testing::model_inputs(file, *graph);
    QVERIFY2(made_up, made_up ? "" : made_up.error().line().c_str());
    const std::vector<Value>& inputs = *made_up;
    auto ours = testing::copies(inputs), again = testing::copies(inputs);
    auto plan = schedule::make_plan(*graph, {{}, codegen::host_target(2)});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    auto compiled = codegen::compile_plan(*codegen::cpu_machine(), *plan, graph->attributes,
                                          {.keep_text = std::getenv("PARTITA_TEST_ASSEMBLY") != nullptr});
    QVERIFY2(compiled, compiled ? "" : compiled.error().line().c_str());
    const codegen::CompileTimes& t = (*compiled)->times;
    qInfo(
        "%zu kernels, %zu calls; emit %.1f optimise %.1f generate %.1f, by the clock %.1f, link %.1f, calls %.1f, in "
        "all %.1f ms",
        plan->kernels.size(), (*compiled)->externs.size(), t.emit_ms, t.optimise_ms, t.generate_ms, t.compile_ms,
        t.link_ms, t.prepare_ms, t.total_ms);
    for (const codegen::ExternReport& e : (*compiled)->externs)
      if (e.library == "interpreter") qInfo("interpreted: %s %s %s", e.node.c_str(), e.op.c_str(), e.why_not.c_str());
    if (std::getenv("PARTITA_TEST_PLAN")) puts(print(*plan).c_str());
    if (std::getenv("PARTITA_TEST_ASSEMBLY")) puts((*compiled)->ir.c_str());

    const auto exact = interpret(*graph, testing::copies(inputs), {.float64 = true});
    QVERIFY2(exact, exact ? "" : exact.error().line().c_str());
    const auto expected = interpret(*graph, inputs);
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    for (int round = 0; round < 2; ++round) {
      auto found = (*compiled)->run(round == 0 ? ours : again);
      QVERIFY2(found, found ? "" : found.error().line().c_str());
      QCOMPARE(found->size(), expected->size());
      for (std::size_t i = 0; i < expected->size(); ++i) {
        const std::string wrong = testing::wrong((*expected)[i], (*found)[i], {1e-4, 1e-4}, &(*exact)[i]);
        QVERIFY2(wrong.empty(), qPrintable(QString("output %1: %2").arg(i).arg(wrong.c_str())));
      }
    }
    for (std::size_t i = 0; i < inputs.size(); ++i)
      QCOMPARE(testing::wrong(inputs[i], ours[i], {1e-4, 1e-4}), std::string());
  }
};

}  // namespace partita

QTEST_GUILESS_MAIN(partita::CompiledModels)
#include "test_models.moc"
