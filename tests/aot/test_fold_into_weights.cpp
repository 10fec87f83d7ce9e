// Freezing: the passes of its stage, of which fold_into_weights puts a batch norm and a scale into a convolution, and
// which parameters are let go.
#include <QtTest>

#include "core/aot/run_program.h"
#include "core/base/memory.h"
#include "core/interp/interpreter.h"
#include "tests/aot/flow.h"
#include "tests/support/fx.h"
#include "tests/support/interpreted.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

class TestFoldIntoWeights : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// Parameters become attributes, what is made of them is computed, and a convolution takes up the batch norm and the
  /// scale behind it. The results stay.
  void freezing_data() {
    QTest::addColumn<QString>("convolution");
    QTest::addColumn<QString>("weight");
    QTest::addColumn<QString>("bias");
    QTest::newRow("convolution") << "[1], [0], [1], False, [0], 1" << "<f32[4, 2, 3][6, 3, 1]>" << "None";
    QTest::newRow("with a bias") << "[1], [0], [1], False, [0], 1" << "<f32[4, 2, 3][6, 3, 1]>" << "p_b";
    QTest::newRow("in groups") << "[1], [0], [1], False, [0], 2" << "<f32[4, 1, 3][3, 3, 1]>" << "p_b";
    QTest::newRow("transposed in groups") << "[1], [0], [1], True, [0], 2" << "<f32[2, 2, 3][6, 3, 1]>" << "p_b";
  }
  void freezing() {
    QFETCH(QString, convolution);
    QFETCH(QString, weight);
    QFETCH(QString, bias);
    const auto graph =
        fx("p_w: " + weight.toStdString() +
               ", p_b: <f32[4][1]>, p_g: <f32[4][1]>, p_h: <f32[4][1]>, b_m: <f32[4][1]>, b_v: <f32[4][1]>, "
               "x: <f32[1, 2, 5][10, 5, 1]>",
           "c = $convolution(x, p_w, " + bias.toStdString() + ", " + convolution.toStdString() +
               ")\nn = $_native_batch_norm_legit_no_training(c, p_g, p_h, b_m, b_v, 0.1, 1e-05)\ny = n[0]\n"
               "e = $exp(p_b)\nv = $view(e, [1, 4, 1])\nz = $mul.Tensor(y, v)\nt = $sub.Tensor(z, 2, alpha = 3)\n"
               "r = $relu(t)\nreturn (r,)");
    std::vector<Value> values;
    for (const Node* p : graph->placeholders()) {
      Tensor t = *Tensor::empty(DType::Float32, *concrete(p->meta.tensor()->sizes));
      for (std::int64_t i = 0; i < t.numel(); ++i)
        t.as<float>()[i] = 0.25F + static_cast<float>((i * 7 + static_cast<std::int64_t>(values.size())) % 5) / 4;
      values.emplace_back(std::move(t));
    }
    const auto plain = made(graph, {.train = false, .freezing = false});
    VERIFY_DONE(plain);
    const auto frozen = made(graph, {.train = false, .freezing = true, .values = values});
    VERIFY_DONE(frozen);
    const Graph& forward = *frozen->partition.forward;
    QCOMPARE(frozen->frozen.size(), 6U);
    QCOMPARE(forward.kind_counts().at("call_function"), 2U);
    QCOMPARE(forward.attributes.size(), 2U);
    std::vector<Value> kept = values;
    for (std::size_t i : frozen->frozen) kept[i] = Value();
    const auto expected = interpret(*plain->partition.forward, values), found = interpret(forward, kept);
    VERIFY_DONE(expected);
    VERIFY_DONE(found);
    const std::vector<double> a = elements((*expected)[0]), b = elements((*found)[0]);
    QCOMPARE(a.size(), b.size());
    QVERIFY(std::ranges::any_of(a, [](double x) { return x > 0; }));
    for (std::size_t i = 0; i < a.size(); ++i) QVERIFY(std::abs(a[i] - b[i]) <= 1e-5 * (1 + std::abs(a[i])));
  }

  /// Parameters that code has as constants are let go, and runs need them no more.
  void frozen_parameters_are_discarded() {
    const auto graph =
        fx("p_w: <f32[1000][1]>, x: <f32[1000][1]>", "a = $neg(p_w)\nb = $mul.Tensor(a, x)\nreturn (b,)");
    std::size_t held[2];
    std::vector<double> found[2];
    for (const bool discard : {false, true}) {
      const ConfigScope scope(
          *patched_config({{"freezing", "true"}, {"freezing_discard_parameters", discard ? "true" : "false"}}));
      const std::size_t before = held_bytes();
      RunOptions options;
      options.aot.train = false;
      options.forward = [](const Graph& g) -> Result<CompiledFn> {
        return CompiledFn([&g](std::vector<Value> values) { return interpret(g, std::move(values)); });
      };
      auto function = [&] {
        auto program = std::make_shared<ExportedProgram>();
        program->inputs = {{ProgramInputKind::Parameter, "p_w", "w"}, {ProgramInputKind::UserInput, "x"}};
        program->outputs = {{ProgramOutputKind::UserOutput, "b"}};
        program->tensors.emplace("w", f32({1000}, std::vector<double>(1000, 3)));
        Artefact artefact = artefact_of(*graph);
        artefact.program = program;
        TensorFile io;
        io.tensors["input.0"] = f32({1000}, std::vector<double>(1000, 2));
        return TrainedFunction::make(artefact, io, options);
      }();
      VERIFY_DONE(function);
      held[discard] = held_bytes() - before;
      for (int run = 0; run < 2; ++run) {
        const auto out = function->step();
        VERIFY_DONE(out);
        found[discard] = elements(*out->find("output.0"));
        QCOMPARE(found[discard], std::vector<double>(1000, -6));
      }
    }
    QVERIFY2(held[1] + 4000 <= held[0], qPrintable(QString("%1 and %2").arg(held[0]).arg(held[1])));
  }

  /// What the caller sees written or gets back stays an input, and training freezes nothing.
  void what_is_not_frozen() {
    const auto graph = fx("p_w: <f32[2][1]>, p_v: <f32[2][1]>, b_n: <f32[2][1]>, x: <f32[2][1]>",
                          "a = $add_.Tensor(b_n, x)\nt = $view(p_v, [2, 1])\nm = $mul.Tensor(x, p_w)\n"
                          "n = $mul.Tensor(m, p_v)\nreturn (n, t)");
    const std::vector<Value> values = {f32({2}, {1, 2}), f32({2}, {3, 4}), f32({2}, {5, 6}), f32({2}, {7, 8})};
    const auto frozen = made(graph, {.train = false, .freezing = true, .values = values});
    VERIFY_DONE(frozen);
    QCOMPARE(frozen->frozen, std::vector<std::size_t>{0});
    QCOMPARE(stages_of(*frozen),
             std::string("pre_grad_passes functional functional_passes joint_passes freezing partition"));
    const auto trained = made(graph, {.freezing = true, .values = values});
    VERIFY_DONE(trained);
    QVERIFY(trained->frozen.empty());
  }
};

QTEST_GUILESS_MAIN(TestFoldIntoWeights)
#include "test_fold_into_weights.moc"
