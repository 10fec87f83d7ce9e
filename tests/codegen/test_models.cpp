// Whole graphs of the corpus, compiled: outputs and mutated inputs must be the interpreter's.
#include <fstream>
#include <sstream>

#include "codegen/cpu/executable.h"
#include "codegen/cpu/host.h"
#include "core/loops/execute.h"
#include "tests/codegen/run_kernel.h"
#include "tests/schedule/plan_test.h"
#include "tests/support/corpus.h"

namespace partita {

namespace {

/// The largest |a - b| divided by the largest |b| (at least 1), because random inputs make sums that cancel.
double distance(const Value& a, const Value& b) {
  const Tensor *x = a.get<Tensor>(), *y = b.get<Tensor>();
  if (!x || !y) return x || y ? INFINITY : 0;
  if (x->dtype != y->dtype || x->sizes != y->sizes) return INFINITY;
  double scale = 1, worst = 0;
  for (std::int64_t i = 0; i < x->numel(); ++i) {
    double u = x->item_as_double(i), v = y->item_as_double(i);
    if (u == v || (std::isnan(u) && std::isnan(v))) continue;
    worst = std::isnan(u - v) ? INFINITY : std::max(worst, std::abs(u - v));
    scale = std::max(scale, std::abs(v));
  }
  return worst / scale;
}

}  // namespace

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
    std::ifstream in(corpus / "models" / path.toStdString());
    std::stringstream text;
    text << in.rdbuf();
    auto graph = testing::parse(text.str());
    auto propagated = propagate(*graph);
    QVERIFY2(propagated, propagated ? "" : propagated.error().line().c_str());
    auto plan = schedule::make_plan(*graph, {{}, codegen::host_target(2)});
    if (!plan && plan.error().code == "ops.unknown") QSKIP(plan.error().line().c_str());
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
        double d = distance(ours[b], reference[b]);
        QVERIFY2(d < 1e-3, qPrintable(QString("%1 differs by %2\n%3")
                                          .arg(QString::fromStdString(buffer.name))
                                          .arg(d)
                                          .arg(QString::fromStdString(loops::print(k)))));
        ++b;
      }
    }
  }
  void run() {
    QFETCH(QString, path);
    // Their inputs hold positions in pooling windows, which random numbers are not.
    if (path == "resnet/graphs/inductor_decomp/backward.py" || path == "resnet/graphs/post_grad_1.py")
      QSKIP("needs the forward's values");
    auto corpus = testing::corpus();
    if (corpus.empty()) QSKIP(testing::no_corpus);
    std::ifstream in(corpus / "models" / path.toStdString());
    std::stringstream text;
    text << in.rdbuf();
    auto graph = testing::parse(text.str());
    // Text has no metas of tuples.
    auto propagated = propagate(*graph);
    QVERIFY2(propagated, propagated ? "" : propagated.error().line().c_str());
    auto inputs = testing::random_inputs(*graph, 1, 8);
    auto ours = testing::copies(inputs), again = testing::copies(inputs);
    auto plan = schedule::make_plan(*graph, {{}, codegen::host_target(2)});
    if (!plan && plan.error().code == "ops.unknown") QSKIP(plan.error().line().c_str());
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    auto compiled =
        codegen::compile_cpu(*plan, graph->attributes, {.keep_text = std::getenv("PARTITA_TEST_ASSEMBLY") != nullptr});
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

    auto expected = interpret(*graph, inputs);
    if (!expected && expected.error().code == "ops.unknown") QSKIP(expected.error().line().c_str());
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    for (int round = 0; round < 2; ++round) {
      auto found = (*compiled)->run(round == 0 ? ours : again);
      QVERIFY2(found, found ? "" : found.error().line().c_str());
      QCOMPARE(found->size(), expected->size());
      for (std::size_t i = 0; i < expected->size(); ++i) {
        double d = distance((*found)[i], (*expected)[i]);
        QVERIFY2(d < 1e-3, qPrintable(QString("output %1 differs by %2").arg(i).arg(d)));
      }
    }
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].get<Tensor>()) QVERIFY2(distance(ours[i], inputs[i]) < 1e-3, "an input");
  }
};

}  // namespace partita

QTEST_GUILESS_MAIN(partita::CompiledModels)
#include "test_models.moc"
