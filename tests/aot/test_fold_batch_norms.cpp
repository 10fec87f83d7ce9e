// The constants of a graph, which are computed in the first run, and fold_batch_norms, which works on them.
#include <QtTest>

#include "core/aot/run_program.h"
#include "core/interp/interpreter.h"
#include "tests/aot/flow.h"
#include "tests/support/fx.h"
#include "tests/support/interpreted.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

class TestFoldBatchNorms : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// What depends on parameters only is computed in the first run, but for views, what is returned, and what would be
  /// larger than they are.
  void constants_are_split() {
    const auto graph =
        fx("p_w: <f32[2][1]>, p_v: <f32[2][1]>, x: <f32[2][1]>",
           "s = $sin(p_w)\nc = $cos(s)\ne = $exp(p_v)\nv = $view(c, [2, 1])\nw = $expand(v, [2, 4])\n"
           "m = $mul.Tensor(x, s)\nn = $add.Tensor(m, e)\n"
           "q = $tanh(w)\nk = $sum.dim_IntList(q, [1])\nl = $neg(w)\no = $mul.Tensor(n, k)\nreturn (o, e, l)");
    const auto split = made(graph, {.train = false, .split_constants = true});
    VERIFY_DONE(split);
    QVERIFY(split->constants);
    QCOMPARE(split->constants->inputs, std::vector<std::size_t>{0});
    QCOMPARE(split->constants->graph->outputs().size(), 3U);
    const std::vector<Node*> inputs = split->partition.forward->placeholders();
    QCOMPARE(inputs.size(), 6U);
    for (std::size_t i = 3; i < 6; ++i) QVERIFY(inputs[i]->note.find("_FOLDED_CONST_") != std::string::npos);
    QCOMPARE(count(*split->partition.forward, "aten.sin.default"), 0);
    QCOMPARE(count(*split->partition.forward, "aten.exp.default"), 1);
    const ConfigScope small(*patched_config({{"fold_limit", "0"}}));
    const auto smaller = made(graph, {.train = false, .split_constants = true});
    VERIFY_DONE(smaller);
    QCOMPARE(smaller->constants->graph->outputs().size(), 2U);
    QCOMPARE(count(*smaller->partition.forward, "aten.tanh.default"), 1);

    // Of several results each by itself, and views of an input not at all.
    const auto several = made(fx("p_w: <f32[2, 3][3, 1]>, x: <f32[2, 3][3, 1]>",
                                 "n = $native_layer_norm(p_w, [3], None, None, 1e-05)\na = n[0]\nb = n[2]\n"
                                 "u = $unbind.int(p_w)\nv = u[1]\n"
                                 "m = $mul.Tensor(x, a)\no = $mul.Tensor(m, b)\nq = $mul.Tensor(o, v)\nreturn (q,)"),
                              {.train = false, .split_constants = true});
    VERIFY_DONE(several);
    QVERIFY(several->constants);
    QCOMPARE(several->constants->graph->outputs().size(), 2U);
    QCOMPARE(count(*several->partition.forward, "aten.native_layer_norm.default"), 0);
    QCOMPARE(count(*several->partition.forward, "aten.unbind.int"), 1);

    // The same results, in the first run and in later ones.
    auto program = std::make_shared<ExportedProgram>();
    for (const char* name : {"w", "v"}) {
      program->inputs.push_back({ProgramInputKind::Parameter, std::string("p_") + name, name});
      program->tensors.emplace(name, f32({2}, {0.25, 2}));
    }
    program->inputs.push_back({ProgramInputKind::UserInput, "x"});
    for (const char* name : {"o", "e", "l"}) program->outputs.push_back({ProgramOutputKind::UserOutput, name});
    Artefact artefact = artefact_of(*graph);
    artefact.program = program;
    TensorFile io;
    io.tensors["input.0"] = f32({2}, {3, 4});
    std::vector<std::vector<double>> found;
    for (const char* on : {"true", "false"}) {
      const ConfigScope scope(*patched_config({{"use_runtime_constant_folding", on}}));
      RunOptions options;
      options.aot.train = false;
      options.forward = [](const Graph& g) -> Result<CompiledFn> {
        return CompiledFn([&g](std::vector<Value> values) { return interpret(g, std::move(values)); });
      };
      auto function = TrainedFunction::make(artefact, io, options);
      VERIFY_DONE(function);
      QCOMPARE(function->graphs()->constants.has_value(), std::string_view(on) == "true");
      for (int run = 0; run < 2; ++run) {
        const auto out = function->step();
        VERIFY_DONE(out);
        found.push_back(elements(*out->find("output.0")));
      }
    }
    for (const auto& values : found) QCOMPARE(values, found.front());
  }

  void batch_norms_go_into_constant_weights_data() {
    QTest::addColumn<QString>("weight");
    QTest::addColumn<QString>("convolution");  // its arguments after the weight
    QTest::addColumn<QString>("norm");         // the weight and bias
    QTest::addColumn<QString>("eps");
    QTest::addColumn<QString>("results");
    QTest::addColumn<bool>("folded");
    const QString plain = "<f32[4, 2, 3][6, 3, 1]>", rest = ", [1], [0], [1], False, [0], 1";
    const auto row = [](const char* name, const QString& weight, const QString& convolution, const char* norm,
                        const char* results, bool folded, const char* eps = "1e-05") {
      QTest::newRow(name) << weight << convolution << norm << eps << results << folded;
    };
    row("a bias", plain, "p_b" + rest, "p_g, p_h", "r, ", true);
    row("no bias", plain, "None" + rest, "p_g, p_h", "r, ", true);
    row("neither weight nor bias of the norm", plain, "p_b" + rest, "None, None", "r, ", true);
    row("groups", "<f32[4, 1, 3][3, 3, 1]>", "p_b, [1], [0], [1], False, [0], 2", "p_g, None", "r, ", true);
    row("transposed", "<f32[2, 4, 3][12, 3, 1]>", "p_b, [1], [0], [1], True, [0], 1", "p_g, p_h", "r, ", false);
    row("the convolution is read", plain, "p_b" + rest, "p_g, p_h", "r, c, ", false);
    row("a bias of the user's", plain, "x_b" + rest, "p_g, p_h", "r, ", false);
    row("a scale of the user's", plain, "p_b" + rest, "x_b, p_h", "r, ", false);
    row("a number that comes after the convolution", plain, "p_b" + rest, "p_g, p_h", "r, ", false, "e");
  }
  /// What parameters alone decide of a convolution and its batch norm is computed once.
  void batch_norms_go_into_constant_weights() {
    QFETCH(QString, weight);
    QFETCH(QString, convolution);
    QFETCH(QString, norm);
    QFETCH(QString, eps);
    QFETCH(QString, results);
    QFETCH(bool, folded);
    const auto graph =
        fx("p_w: " + weight.toStdString() +
               ", p_b: <f32[4][1]>, p_g: <f32[4][1]>, p_h: <f32[4][1]>, b_m: <f32[4][1]>, b_v: <f32[4][1]>, "
               "x_b: <f32[4][1]>, x_e: <f32[][]>, x: <f32[1, 2, 5][10, 5, 1]>",
           "c = $convolution(x, p_w, " + convolution.toStdString() + ")\n" + (eps == "e" ? "e = $item(x_e)\n" : "") +
               "n = $_native_batch_norm_legit_no_training(c, " + norm.toStdString() + ", b_m, b_v, 0.1, " +
               eps.toStdString() + ")\ny = n[0]\nr = $relu(y)\nreturn (" + results.toStdString() + ")");
    std::vector<Value> values;
    for (const Node* p : graph->placeholders()) {
      Tensor t = *Tensor::empty(DType::Float32, *concrete(p->meta.tensor()->sizes));
      for (std::int64_t i = 0; i < t.numel(); ++i)
        t.as<float>()[i] = 0.25F + static_cast<float>((i * 7 + static_cast<std::int64_t>(values.size())) % 5) / 4;
      values.emplace_back(std::move(t));
    }
    // Not even then are weights scaled in each run, though their values in double are larger than they are.
    const ConfigScope nothing_larger(*patched_config({{"fold_limit", "0"}}));
    const auto plain = made(graph, {.train = false}), split = made(graph, {.train = false, .split_constants = true});
    VERIFY_DONE(plain);
    VERIFY_DONE(split);
    const Graph& forward = *split->partition.forward;
    QCOMPARE(count(forward, "aten._native_batch_norm_legit_no_training.default"), folded ? 0 : 1);
    std::vector<Value> inputs = values;
    if (split->constants) {
      std::vector<Value> fixed;
      for (std::size_t i : split->constants->inputs) fixed.push_back(values[i]);
      const auto once = interpret(*split->constants->graph, fixed);
      VERIFY_DONE(once);
      inputs.insert(inputs.end(), once->begin(), once->end());
    }
    QCOMPARE(inputs.size(), values.size() + (folded ? 2 : 0));
    const auto expected = interpret(*plain->partition.forward, values), found = interpret(forward, inputs);
    VERIFY_DONE(expected);
    VERIFY_DONE(found);
    const std::vector<double> a = elements((*expected)[0]), b = elements((*found)[0]);
    QCOMPARE(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) QVERIFY(std::abs(a[i] - b[i]) <= 1e-5 * (1 + std::abs(a[i])));
  }
};

QTEST_GUILESS_MAIN(TestFoldBatchNorms)
#include "test_fold_batch_norms.moc"
