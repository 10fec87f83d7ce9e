// The flow from a file's graph to the graphs that a compiler gets: its stages, what they keep, and that `aot` shows
// what a run compiles.
#include <QtTest>

#include <nlohmann/json.hpp>

#include "core/aot/aot.h"
#include "core/aot/run_program.h"
#include "core/base/memory.h"
#include "core/interp/interpreter.h"
#include "core/ir/print.h"
#include "core/load/fx_text.h"
#include "tests/support/fx.h"
#include "tests/support/interpreted.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

std::string stages_of(const AotGraphs& graphs) {
  std::string text;
  for (const StageRun& stage : graphs.stages) text += (text.empty() ? "" : " ") + std::string(row_of(stage.stage).name);
  return text;
}

int count(const Graph& graph, std::string_view op) {
  int n = 0;
  for (const Node* node : graph) n += node->op()->name == op;
  for (const auto& [name, child] : graph.children) n += count(*child, op);
  return n;
}

Result<AotGraphs> made(const std::unique_ptr<Graph>& graph, const AotOptions& options) {
  return aot(*graph, nullptr, options);
}

}  // namespace

class TestPipeline : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_stages_are_those_asked_for() {
    const auto graph = fx("x: <f32[3][1]>", "y: <f32[3][1]> = $sin(x)\nreturn (y,)");
    const auto all = made(graph, {});
    VERIFY_DONE(all);
    QCOMPARE(stages_of(*all), std::string("pre_grad_passes functional functional_passes joint joint_passes partition"));
    const auto plain = made(graph, {.passes = false});
    VERIFY_DONE(plain);
    QCOMPARE(stages_of(*plain), std::string("functional joint partition"));
    const auto inference = made(graph, {.train = false});
    VERIFY_DONE(inference);
    QCOMPARE(stages_of(*inference), std::string("pre_grad_passes functional functional_passes joint_passes partition"));
    const auto early = made(graph, {.until = Stage::Joint, .snapshots = true});
    VERIFY_DONE(early);
    QVERIFY(!early->partition.forward);
    QVERIFY(early->after(Stage::PreGradPasses) && !early->after(Stage::JointPasses));
    const auto joint = aot(*early->joint, nullptr, {});
    VERIFY_DONE(joint);
    QCOMPARE(stages_of(*joint), std::string("joint_passes partition"));
  }

  /// A parameter that an archive holds without requires_grad is differentiated only if the inputs' file marks it.
  void frozen_parameters() {
    const auto graph = fx("p_w: <f32[2][1]>, p_v: <f32[2][1]>, x: <f32[2][1]>",
                          "a = $mul.Tensor(x, p_w)\nb = $mul.Tensor(a, p_v)\nc = $sum(b)\nreturn (c,)");
    auto program = std::make_shared<ExportedProgram>();
    for (const char* name : {"w", "v"}) {
      program->inputs.push_back({ProgramInputKind::Parameter, std::string("p_") + name, name});
      Tensor t = f32({2}, {1, 2});
      t.requires_grad = name[0] == 'w';
      program->tensors.emplace(name, std::move(t));
    }
    program->inputs.push_back({ProgramInputKind::UserInput, "x"});
    program->outputs.push_back({ProgramOutputKind::UserOutput, "c"});
    const auto graphs = aot(*graph, program.get(), {.passes = false});
    VERIFY_DONE(graphs);
    const std::vector<Arg> gradients = graphs->partition.backward->outputs();
    QVERIFY(gradients[0].node() && gradients[1].is_none() && gradients[2].is_none());
    Artefact artefact = artefact_of(*graph);
    artefact.program = program;
    TensorFile io;
    io.tensors["input.0"] = f32({2}, {3, 4});
    for (const bool marked : {false, true}) {
      if (marked) (io.tensors["param.v"] = f32({2}, {1, 2})).requires_grad = true;
      const auto out =
          run_program(artefact, io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
      VERIFY_DONE(out);
      QVERIFY(out->find("grad.w"));
      QCOMPARE(out->find("grad.v") != nullptr, marked);
    }
  }

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

  /// A program may return one tensor, or dicts and lists: runs give the leaves.
  void results_are_flattened_data() {
    QTest::addColumn<QString>("returned");
    QTest::addColumn<std::size_t>("leaves");
    QTest::newRow("a tensor") << "a" << std::size_t{1};
    QTest::newRow("a dict of a list") << "{'k': a, 'l': [b, (x, a)]}" << std::size_t{4};
    QTest::newRow("nothing is called") << "(x, [x])" << std::size_t{2};
  }
  void results_are_flattened() {
    QFETCH(QString, returned);
    QFETCH(std::size_t, leaves);
    const auto graph =
        fx("x: <f32[2][1]>", "a: <f32[2][1]> = $sin(x)\nb: <f32[2][1]> = $cos(x)\nreturn " + returned.toStdString());
    const std::vector<Value> inputs = {f32({2}, {1, 2})};
    const auto as_it_is = interpret(*graph, inputs);
    VERIFY_DONE(as_it_is);
    QCOMPARE(as_it_is->size(), leaves);
    const auto functional = made(graph, {.train = false});
    VERIFY_DONE(functional);
    const auto found = interpret(*functional->partition.forward, inputs);
    VERIFY_DONE(found);
    QCOMPARE(found->size(), leaves);
    for (std::size_t i = 0; i < leaves; ++i) QCOMPARE(elements((*found)[i]), elements((*as_it_is)[i]));
  }

  /// What a run writes is copied, so that the archive's values stay, and nothing else is.
  void only_what_is_written_is_copied() {
    const auto graph = fx("p_w: <f32[5000][1]>, b_n: <f32[1000][1]>, x: <f32[1000][1]>",
                          "a = $add_.Tensor(b_n, x)\ns = $sum(p_w)\nm = $mul.Tensor(x, s)\nr = $relu_(m)\nreturn (r,)");
    auto program = std::make_shared<ExportedProgram>();
    program->inputs = {{ProgramInputKind::Parameter, "p_w", "w"},
                       {ProgramInputKind::Buffer, "b_n", "n"},
                       {ProgramInputKind::UserInput, "x"}};
    program->outputs = {{ProgramOutputKind::UserOutput, "r"}};
    program->tensors.emplace("w", f32({5000}, std::vector<double>(5000, 1)));
    program->tensors.emplace("n", f32({1000}, std::vector<double>(1000, 3)));
    Artefact artefact = artefact_of(*graph);
    artefact.program = program;
    TensorFile io;
    io.tensors["input.0"] = f32({1000}, std::vector<double>(1000, 2));
    RunOptions options;
    options.aot.train = false;
    options.forward = [](const Graph& g) -> Result<CompiledFn> {
      return CompiledFn([&g](std::vector<Value> values) { return interpret(g, std::move(values)); });
    };
    const std::size_t before = held_bytes();
    auto function = TrainedFunction::make(artefact, io, options);
    VERIFY_DONE(function);
    const std::size_t more = held_bytes() - before;
    QVERIFY2(more >= 4000 && more < 20000, qPrintable(QString::number(more)));
    for (const double expected : {5, 7}) {
      const auto out = function->step();
      VERIFY_DONE(out);
      QCOMPARE(elements(*out->find("buffer_after.n")), std::vector<double>(1000, expected));
    }
    QCOMPARE(elements(program->tensors.at("n")), std::vector<double>(1000, 3));
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

  /// Layers of one input are one product, in their gradients too, and of inference their weights are joined once.
  void linears_are_packed() {
    const auto graph =
        fx("p_v: <f32[3, 4][4, 1]>, p_w: <f32[3, 4][4, 1]>, x: <f32[32, 4][4, 1]>",
           "g: <f32[32, 3][3, 1]> = $linear(x, p_v)\nu: <f32[32, 3][3, 1]> = $linear(x, p_w)\ns: <f32[32, "
           "3][3, 1]> = $silu(g)\nm: <f32[32, 3][3, 1]> = $mul.Tensor(s, u)\nreturn (m,)");
    std::vector<std::vector<double>> results[2];
    int products[2] = {};
    for (const bool packed : {false, true}) {
      AotOptions options{.requires_grad = {true, true, true}};
      options.pack_linears = packed;
      const auto trained = made(graph, options);
      VERIFY_DONE(trained);
      products[packed] = count(*trained->joint, "aten.mm.default");
      std::vector<Value> inputs;
      for (const Node* p : trained->joint->placeholders()) {
        Tensor t = *Tensor::empty(DType::Float32, *concrete(p->meta.tensor()->sizes));
        for (std::int64_t i = 0; i < t.numel(); ++i)
          t.as<float>()[i] = static_cast<float>((i * 7 + static_cast<std::int64_t>(inputs.size())) % 11) / 8 - 0.5F;
        inputs.emplace_back(std::move(t));
      }
      const auto found = interpret(*trained->joint, inputs);
      VERIFY_DONE(found);
      for (const Value& v : *found) results[packed].push_back(elements(v));
    }
    QCOMPARE(products[0], 6);
    QCOMPARE(products[1], 3);
    QCOMPARE(results[0].size(), 4U);
    QCOMPARE(results[1].size(), 4U);
    for (std::size_t r = 0; r < 4; ++r) {
      QCOMPARE(results[0][r].size(), results[1][r].size());
      for (std::size_t i = 0; i < results[0][r].size(); ++i)
        QVERIFY(std::abs(results[0][r][i] - results[1][r][i]) <= 1e-5 * (1 + std::abs(results[0][r][i])));
    }
    const auto inferred = made(graph, {.train = false, .split_constants = true, .pack_linears = true});
    VERIFY_DONE(inferred);
    QVERIFY(inferred->constants);
    QCOMPARE(count(*inferred->constants->graph, "aten.cat.default"), 1);
    QCOMPARE(count(*inferred->partition.forward, "aten.cat.default"), 0);
    QCOMPARE(count(*inferred->partition.forward, "aten.mm.default"), 1);
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

  void associative_scans_data() {
    QTest::addColumn<QString>("size");
    QTest::addColumn<QList<double>>("x");
    QTest::addColumn<QList<double>>("y");
    QTest::addColumn<QList<double>>("gradient");  // of the sum of all y
    using L = QList<double>;
    QTest::newRow("of four") << "4" << L{1, 2, 3, 4} << L{1, 2, 6, 24} << L{33, 16, 10, 6};
    QTest::newRow("of as many as are given") << "s0" << L{2, 3, 1} << L{2, 6, 6} << L{7, 4, 6};
    QTest::newRow("of one") << "1" << L{5} << L{5} << L{1};
  }
  void associative_scans() {
    QFETCH(QString, size);
    QFETCH(QList<double>, x);
    QFETCH(QList<double>, y);
    QFETCH(QList<double>, gradient);
    const auto graph = fx("x: <f32[" + size.toStdString() + "][1]>",
                          "f = self.f\nc = torch.ops.higher_order.associative_scan(f, [x], ())\nr = c[0]\nreturn (r,)",
                          "    class f(torch.nn.Module):\n        def forward(self, a: <f32[][]>, b: <f32[][]>):\n"
                          "            m = $mul.Tensor(a, b)\n            return (m,)\n");
    Artefact artefact = artefact_of(*graph);
    TensorFile io;
    const Sizes sizes{x.size()};
    (io.tensors["input.0"] = f32(sizes, {x.begin(), x.end()})).requires_grad = true;
    io.tensors["tangent.0"] = f32(sizes, std::vector<double>(static_cast<std::size_t>(x.size()), 1));
    const auto out = run_program(artefact, io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    VERIFY_DONE(out);
    const std::vector<double> found = elements(*out->find("output.0")), g = elements(*out->find("grad.input.0"));
    QCOMPARE((QList<double>(found.begin(), found.end())), y);
    QCOMPARE((QList<double>(g.begin(), g.end())), gradient);
  }

  /// Random numbers of a region are drawn once: its backward gets them. Outputs are x * r or sums of dropped rows, so
  /// that the gradient shows which numbers the backward had.
  void backwards_of_regions_that_draw_data() {
    QTest::addColumn<QString>("inputs");
    QTest::addColumn<QString>("lines");
    QTest::addColumn<QString>("graphs");
    const QString head = "    class b(torch.nn.Module):\n        def forward(self, ";
    QTest::newRow("cond") << "x: <f32[4][1]>, p: <b8[][]>"
                          << "b = self.b\nf = self.f\nc = torch.ops.higher_order.cond(p, b, f, (x,))\nr = c[0]\n"
                             "return (r,)"
                          << head +
                                 "x: <f32[4][1]>):\n            r = $rand_like(x)\n"
                                 "            m = $mul.Tensor(x, r)\n            return (m,)\n"
                                 "    class f(torch.nn.Module):\n        def forward(self, x: <f32[4][1]>):\n"
                                 "            m = $sin(x)\n            return (m,)\n";
    QTest::newRow("map") << "x: <f32[4][1]>, p: <b8[][]>"
                         << "b = self.b\nc = torch.ops.higher_order.map_impl(b, [x], [p])\nr = c[0]\nreturn (r,)"
                         << head +
                                "x: <f32[][]>, p: <b8[][]>):\n            e = $_assert_async.msg(p, 'p')\n"
                                "            r = $rand_like(x)\n"
                                "            m = $mul.Tensor(x, r)\n            return (m,)\n";
    QTest::newRow("scan") << "x: <f32[4][1]>, p: <b8[][]>"
                          << "b = self.b\nz = $full([], 0.0)\nc = torch.ops.higher_order.scan(b, [z], [x], [])\n"
                             "r = c[1]\nreturn (r,)"
                          << head +
                                 "c: <f32[][]>, x: <f32[][]>):\n            d = $native_dropout(x, 0.5, True)\n"
                                 "            v = d[0]\n            n = $add.Tensor(c, v)\n"
                                 "            s = $mul.Tensor(v, 1)\n            return (n, s)\n";
  }
  void backwards_of_regions_that_draw() {
    QFETCH(QString, inputs);
    QFETCH(QString, lines);
    QFETCH(QString, graphs);
    const auto graph = fx(inputs.toStdString(), lines.toStdString(), graphs.toStdString());
    Artefact artefact = artefact_of(*graph);
    TensorFile io;
    (io.tensors["input.0"] = f32({4}, {1, 2, 4, 8})).requires_grad = true;
    io.tensors["input.1"] = tensor(DType::Bool, {}, {1});
    io.tensors["tangent.0"] = f32({4}, {1, 1, 1, 1});
    const auto out = run_program(artefact, io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    VERIFY_DONE(out);
    const std::vector<double> y = elements(*out->find("output.0")), g = elements(*out->find("grad.input.0"));
    for (std::size_t i = 0; i < 4; ++i) QCOMPARE(float(g[i] * double(1 << i)), float(y[i]));
    QVERIFY(y != std::vector<double>(4, 0));
  }

  /// As PyTorch's TwoTensor: operators act on each inner tensor.
  void declared_subclasses_are_unwrapped() {
    const auto graph = fx("L_x_: \"TwoTensor(f32[2][1]cpu)\", L_y_: \"TwoTensor(f32[2][1]cpu)\", L_z_: <f32[2][1]>",
                          "mul: \"TwoTensor(f32[2][1]cpu)\" = L_x_ * L_y_\n"
                          "sin: \"TwoTensor(f32[2][1]cpu)\" = mul.sin()\nz: <f32[2][1]> = L_z_.cos()\nreturn (sin, z)");
    Artefact artefact = artefact_of(*graph);
    TensorFile io;
    const std::map<std::string, std::vector<double>> values = {
        {"input.0.a", {1, 2}}, {"input.0.b", {3, 4}}, {"input.1.a", {0.5, 0.25}}, {"input.1.b", {2, 1}}};
    for (const auto& [key, list] : values) (io.tensors[key] = f32({2}, list)).requires_grad = true;
    io.tensors["input.2"] = f32({2}, {0, 0});
    io.tensors["tangent.0.a"] = f32({2}, {1, 1});
    io.tensors["tangent.0.b"] = f32({2}, {2, 2});
    io.metadata["subclasses"] = R"({"TwoTensor": ["a", "b"]})";
    const auto function =
        TrainedFunction::make(artefact, io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    VERIFY_DONE(function);
    const Wrapper& outer = function->wrappers().front();
    QCOMPARE(name_of(outer), std::string_view("AOTDispatchSubclassWrapper"));
    QCOMPARE(summary(outer), std::string("input 0 is a TwoTensor of a and b, input 1 is a TwoTensor of a and b, "
                                         "output 0 is a TwoTensor of a and b"));
    const auto read = read_wrappers(to_json(function->wrappers()).dump());
    VERIFY_DONE(read);
    QVERIFY(*read == function->wrappers());
    const auto out = run_program(artefact, io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    VERIFY_DONE(out);
    for (const std::string& part : {std::string("a"), std::string("b")}) {
      const std::vector<double>&x = values.at("input.0." + part), &y = values.at("input.1." + part);
      const Tensor *sine = out->find("output.0." + part), *gradient = out->find("grad.input.0." + part);
      QVERIFY(sine && gradient && out->find("grad.input.1." + part));
      for (std::size_t i = 0; i < 2; ++i) {
        QVERIFY(std::abs(elements(*sine)[i] - std::sin(x[i] * y[i])) < 1e-6);
        const double tangent = part == "a" ? 1 : 2;
        QVERIFY(std::abs(elements(*gradient)[i] - tangent * std::cos(x[i] * y[i]) * y[i]) < 1e-6);
      }
    }
    QCOMPARE(elements(*out->find("output.1")), (std::vector<double>{1, 1}));
    const auto as_it_is = run_as_it_is(artefact, io, {}, compile_to_interpreter);
    VERIFY_DONE(as_it_is);
    QCOMPARE(elements(*as_it_is->find("output.0.b")), elements(*out->find("output.0.b")));

    // The layer itself takes and gives lists of inner tensors.
    const BoxedFn swaps = post_compile({read->front()}, [](std::vector<Value>& inputs) -> Result<std::vector<Value>> {
      if (inputs.size() != 5) return input_error("test", "not flat");
      std::vector<Value> results = {inputs[1], inputs[0], inputs[4]};
      inputs.assign(5, Value());
      return results;
    });
    std::vector<Value> inputs = {ValueList{f32({1}, {1}), f32({1}, {2})}, ValueList{f32({1}, {3}), f32({1}, {4})},
                                 f32({1}, {5})};
    const auto swapped = swaps(inputs);
    VERIFY_DONE(swapped);
    QCOMPARE(swapped->size(), std::size_t{2});
    QCOMPARE(elements((*(*swapped)[0].get<ValueList>())[0]), std::vector<double>{2});
    QCOMPARE(inputs.size(), std::size_t{3});

    const auto mixed = fx("L_x_: \"TwoTensor(f32[2][1]cpu)\", L_z_: <f32[2][1]>",
                          "mul: \"TwoTensor(f32[2][1]cpu)\" = L_x_ * L_z_\nreturn (mul,)");
    const auto refused = TrainedFunction::make(artefact_of(*mixed), io,
                                               {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, std::string("aot.subclass"));
    io.metadata["subclasses"] = "[]";
    const auto unread =
        run_program(artefact, io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    QVERIFY(!unread);
    QCOMPARE(unread.error().code, std::string("io.subclasses"));
  }

  void tensor_subclasses_are_refused_by_name() {
    const auto graph = fx("L_y_: <f32[3][1]>, L_x_: \"TwoTensor(f32[3][1]cpu)\"",
                          "mul: \"TwoTensor(f32[3][1]cpu)\" = L_x_ * L_y_\nreturn (mul,)");
    const auto refused = made(graph, {});
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, std::string("aot.subclass"));
    QVERIFY(refused.error().message.find("input L_x_ is a TwoTensor") != std::string::npos);
  }

  // Text has no metas of tuples.
  void a_joint_graph_of_a_file_enters_at_its_passes() {
    const auto graph = fx("x: <f32[3, 4][4, 1]>",
                          "v = $var_mean.correction(x, [1], correction = 0, keepdim = True)\n"
                          "a: <f32[3, 1][1, 1]> = v[0]\n"
                          "b: <f32[3, 1][1, 1]> = v[1]\n"
                          "y: <f32[3, 1][1, 1]> = $mul.Tensor(a, b)\n"
                          "return (y,)");
    const auto graphs = made(graph, {.passes = false});
    VERIFY_DONE(graphs);
    auto text = parse_fx_text(print(*graphs->joint));
    VERIFY_DONE(text);
    for (const bool passes : {false, true}) {
      const auto cut = aot(**text, nullptr, {.passes = passes});
      VERIFY_DONE(cut);
      QCOMPARE(stages_of(*cut), std::string(passes ? "joint_passes partition" : "partition"));
    }
  }

  void the_joint_graph_is_kept_from_before_its_passes() {
    const auto graph =
        fx("x: <f32[3][1]>", "y: <f32[3][1]> = $mul.Tensor(x, 1)\nz: <f32[3][1]> = $sin(y)\nreturn (z,)");
    const auto graphs = made(graph, {.snapshots = true});
    VERIFY_DONE(graphs);
    QVERIFY(count(*graphs->before_joint_passes(), "aten.mul.Tensor") > count(*graphs->joint, "aten.mul.Tensor"));
    const auto without = made(graph, {.disabled = {"rewrite_joint"}});
    VERIFY_DONE(without);
    QCOMPARE(count(*without->joint, "aten.mul.Tensor"), count(*graphs->before_joint_passes(), "aten.mul.Tensor"));
  }

  // A call under no_grad is not the equal one outside of it, and gives no gradient.
  void pre_grad_passes_keep_regions_without_gradients() {
    auto graph = parse_fx_text(
        "class M(torch.nn.Module):\n"
        "    def forward(self, x: 'f32[3][1]cpu'):\n"
        "        off = torch._C._set_grad_enabled(False)\n"
        "        a: 'f32[3][1]cpu' = torch.sin(x)\n"
        "        on = torch._C._set_grad_enabled(True)\n"
        "        b: 'f32[3][1]cpu' = torch.sin(x)\n"
        "        y: 'f32[3][1]cpu' = torch.mul(a, b)\n"
        "        return (y,)\n");
    VERIFY_DONE(graph);
    for (const bool passes : {false, true}) {
      const auto graphs = made(*graph, {.passes = passes});
      VERIFY_DONE(graphs);
      QCOMPARE(count(*graphs->joint, "aten.cos.default"), 1);
      QCOMPARE(count(*graphs->joint, "aten.mul.Tensor"), 3);  // one of the forward, two of the gradient
    }
  }

  // The casts of autocast belong to the parts of a composite too, so a region outlives the pre-grad passes.
  void pre_grad_passes_keep_autocast() {
    auto graph = parse_fx_text(
        "class M(torch.nn.Module):\n"
        "    def forward(self, x: 'f32[3, 3][3, 1]cpu'):\n"
        "        enter = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)\n"
        "        a: 'bf16[3, 3][3, 1]cpu' = torch.matmul(x, x)\n"
        "        e: 'bf16[3, 3][3, 1]cpu' = torch.functional.einsum('ij,kj->ik', x, x)\n"
        "        m: 'bf16[3, 3][3, 1]cpu' = torch.ops.aten.linalg_multi_dot.default([x, x, x])\n"
        "        r: 'bf16[3, 3][3, 1]cpu' = torch.rnn_tanh_cell(x, x, x, x)\n"
        "        leave = torch.amp.autocast_mode._exit_autocast(enter)\n"
        "        b: 'f32[3, 3][3, 1]cpu' = torch.matmul(x, x)\n"
        "        return (a, b, e, m, r)\n");
    VERIFY_DONE(graph);
    for (const bool passes : {false, true}) {
      const auto graphs = made(*graph, {.train = false, .passes = passes});
      VERIFY_DONE(graphs);
      const std::vector<Arg> outputs = graphs->partition.forward->outputs();
      QCOMPARE(outputs[0].node()->meta.tensor()->dtype, DType::BFloat16);
      QCOMPARE(outputs[1].node()->meta.tensor()->dtype, DType::Float32);
      for (const std::size_t i : {2, 3, 4}) QCOMPARE(outputs[i].node()->meta.tensor()->dtype, DType::BFloat16);
    }
  }

  void dropout_that_drops_nothing_returns_its_argument() {
    const auto graph = fx("x: <f32[3][1]>", "y: <f32[3][1]> = $dropout(x, 0.5, False)\nreturn (y,)");
    const auto graphs = made(graph, {.train = false});
    VERIFY_DONE(graphs);
    const Node* output = graphs->partition.forward->outputs()[0].node();
    QVERIFY(output->is_placeholder());
  }

  void what_is_shown_is_what_runs() {
    auto graph = parse_fx_text(
        "class M(torch.nn.Module):\n"
        "    def forward(self, x: 'f32[3, 3][3, 1]cpu', y: 'f32[3, 3][3, 1]cpu'):\n"
        "        a: 'f32[3, 3][3, 1]cpu' = torch.ops.aten.mul.Tensor(x, 1)\n"
        "        b: 'f32[3, 3][3, 1]cpu' = torch.ops.aten.mm.default(a, y)\n"
        "        v: 'f32[9][1]cpu' = torch.ops.aten.view.default(x, [9])\n"
        "        c: 'f32[3, 3][3, 1]cpu' = torch.ops.aten.tanh.default(b)\n"
        "        return (v, c)\n");
    VERIFY_DONE(graph);
    TensorFile io;
    for (const char* key : {"input.0", "input.1"}) {
      auto t = Tensor::zeros(DType::Float32, Sizes{3, 3});
      VERIFY_DONE(t);
      io.tensors[key] = *t;
      io.tensors[key].requires_grad = true;
    }
    std::string ran;
    RunOptions options;
    options.forward = options.backward = [&](const Graph& compiled) -> Result<CompiledFn> {
      ran += print(compiled);
      return CompiledFn();
    };
    Artefact artefact = Artefact::of_graph(std::shared_ptr<const Graph>((*graph)->clone()));
    artefact.kind = ArtefactKind::Dynamo;
    const auto function = TrainedFunction::make(artefact, io, options);
    VERIFY_DONE(function);
    const auto shown = aot(**graph, nullptr, as_run(**graph, {.requires_grad = {true, true}}));
    VERIFY_DONE(shown);
    QCOMPARE(ran, print(*shown->partition.forward) + print(*shown->partition.backward));
    QCOMPARE(count(*shown->joint, "aten.mul.Tensor"), 0);
  }
};

QTEST_GUILESS_MAIN(TestPipeline)
#include "test_pipeline.moc"
