#include <QtTest>

#include "core/aot/aot.h"
#include "core/aot/graph_io.h"
#include "core/compare/compare.h"
#include "core/interp/interpreter.h"
#include "core/load/session.h"
#include "tests/support/corpus.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

/// A text without example values of s0 and s1.
std::unique_ptr<Graph> dynamic() {
  return fx("s: \"Sym(s0)\", t: \"Sym(s1)\", x: <f32[s0, s1][s1, 1]>, y: <f32[s1][1]>",
            "a: <f32[s0, s1][s1, 1]> = $add.Tensor(x, y)\nb: <f32[s1, s0][s0, 1]> = $view(a, [t, s])\nreturn (b,)");
}

}  // namespace

class TestGraphIo : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void sizes_come_from_the_inputs() {
    // Inputs are numbered with the symbols (from 2), or without them, as PyTorch's example inputs are (from 0).
    for (const int first : {2, 0}) {
      const auto graph = dynamic();
      TensorFile io;
      io.tensors["input." + std::to_string(first)] = f32({2, 3}, {1, 2, 3, 4, 5, 6});
      io.tensors["input." + std::to_string(first + 1)] = f32({3}, {10, 20, 30});
      const auto inputs = gather_inputs(*graph, nullptr, io, std::nullopt);
      QVERIFY2(inputs, inputs ? "" : inputs.error().line().c_str());
      QCOMPARE(*inputs->values[0].get<std::int64_t>(), std::int64_t{2});
      QCOMPARE(*inputs->values[1].get<std::int64_t>(), std::int64_t{3});
      QCOMPARE(*graph->shapes->hint(SymExpr::symbol("s1")), std::int64_t{3});
      const auto outputs = interpret(*graph, inputs->values);
      QVERIFY2(outputs, outputs ? "" : outputs.error().line().c_str());
      QCOMPARE(elements(outputs->at(0)), (std::vector<double>{11, 22, 33, 14, 25, 36}));
    }
  }

  /// A file without strides holds row-major values. Where elements of the graph's layout share memory, the values that
  /// are given count; else they are laid out as the graph says. Both are written in place.
  void row_major_values_of_other_symbolic_strides_data() {
    QTest::addColumn<QString>("input");
    QTest::addColumn<QList<qint64>>("strides");
    QTest::newRow("transposed") << "f32[s0, s1][1, s0]" << QList<qint64>{1, 2};
    QTest::newRow("with gaps") << "f32[s0, s1][2*s1, 2]" << QList<qint64>{6, 2};
    QTest::newRow("windows") << "f32[s0, s1][s1 - 1, 1]" << QList<qint64>{3, 1};
    QTest::newRow("expanded") << "f32[s0, s1][0, 1]" << QList<qint64>{3, 1};
    QTest::newRow("a stride of its own") << "f32[s0, s1][s2, 1]" << QList<qint64>{3, 1};
  }
  void row_major_values_of_other_symbolic_strides() {
    QFETCH(QString, input);
    QFETCH(QList<qint64>, strides);
    const auto graph = fx("x: <" + input.toStdString() + ">", "w = $mul_.Tensor(x, 2)\nn = $neg(x)\nreturn (n,)");
    TensorFile io;
    io.tensors["input.0"] = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    const auto inputs = gather_inputs(*graph, nullptr, io, std::nullopt);
    QVERIFY2(inputs, inputs ? "" : inputs.error().line().c_str());
    const Sizes& found = inputs->values[0].get<Tensor>()->strides;
    QCOMPARE((QList<qint64>(found.begin(), found.end())), strides);
    const auto outputs = interpret(*graph, inputs->values);
    QVERIFY2(outputs, outputs ? "" : outputs.error().line().c_str());
    QCOMPARE(elements(outputs->at(0)), (std::vector<double>{-2, -4, -6, -8, -10, -12}));
    QCOMPARE(elements(inputs->values[0]), (std::vector<double>{2, 4, 6, 8, 10, 12}));
  }

  void weights_are_known_by_their_names_and_comments() {
    // Dynamo's names, torch.export's names, and the comments of a trace log. A size comes before the input that it
    // belongs to.
    for (const std::string& text :
         {std::string("L_self_modules_net_modules_0_parameters_weight_: <f32[3][1]>, s: "
                      "\"Sym(s0)\", L_x_: <f32[s0, 3][3, 1]>"),
          std::string("p_net_0_weight: <f32[3][1]>, s: \"Sym(s0)\", x: <f32[s0, 3][3, 1]>")}) {
      const std::string weight = text.substr(0, text.find(':')),
                        x = text.find("L_x_") == std::string::npos ? "x" : "L_x_";
      const auto graph = fx(text, "a: <f32[s0, 3][3, 1]> = $add.Tensor(" + x + ", " + weight + ")\nreturn (a,)");
      TensorFile io;
      io.tensors["input.0"] = f32({2, 3}, {1, 2, 3, 4, 5, 6});
      auto without = gather_inputs(*graph, nullptr, io, std::nullopt);
      QVERIFY(!without);
      QCOMPARE(without.error().code, std::string("io.missing"));
      io.tensors["param.net.0.weight"] = f32({3}, {10, 20, 30});
      const auto inputs = gather_inputs(*graph, nullptr, io, std::nullopt);
      QVERIFY2(inputs, inputs ? "" : inputs.error().line().c_str());
      QCOMPARE(inputs->keys, (std::vector<std::string>{"param.net.0.weight", "symbol.s", "input.0"}));
      const auto outputs = interpret(*graph, inputs->values);
      QVERIFY2(outputs, outputs ? "" : outputs.error().line().c_str());
      QCOMPARE(elements(outputs->at(0)), (std::vector<double>{11, 22, 33, 14, 25, 36}));
    }
  }

  void inputs_go_where_they_fit_when_no_name_tells() {
    const auto graph =
        fx("primals_1: <f32[4, 3][3, 1]>, primals_2: \"Sym(s0)\", primals_3: <f32[s0, 3][3, 1]>",
           "a: <f32[3, 4][1, 3]> = $t(primals_1)\nb: <f32[s0, 4][4, 1]> = $mm(primals_3, a)\nreturn (b,)");
    TensorFile io;
    io.tensors["input.0"] = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    const auto inputs = gather_inputs(*graph, nullptr, io, 3);
    QVERIFY2(inputs, inputs ? "" : inputs.error().line().c_str());
    QCOMPARE(inputs->keys, (std::vector<std::string>{"param.primals_1", "symbol.primals_2", "input.0"}));
    QCOMPARE(*inputs->values[1].get<std::int64_t>(), std::int64_t{2});
  }

  void the_joint_graph_of_an_archive_takes_the_archives_inputs() {
    const std::string folder = PARTITA_SOURCE_DIR "/resources/samples/mlp/";
    const auto loaded = load(folder + "program.pt2");
    QVERIFY2(loaded, loaded ? "" : loaded.error().line().c_str());
    const ExportedProgram& program = *loaded->artefacts[0].program;
    const auto graph = loaded->artefacts[0].graph();
    const auto made = aot(**graph, &program, {});
    QVERIFY2(made, made ? "" : made.error().line().c_str());
    const ExportedProgram joint = program_of_joint(**graph, program, *made);
    const auto io = read_safetensors(folder + "io.safetensors");
    const auto inputs = gather_inputs(*made->joint, &joint, *io, std::nullopt);  // no seed: nothing is made up
    QVERIFY2(inputs, inputs ? "" : inputs.error().line().c_str());
    QCOMPARE(elements(inputs->values[0]), elements(Value(*program.tensor_of(program.inputs[0].name))));
    QVERIFY(inputs->keys[0].starts_with("param."));
    QVERIFY(std::ranges::find(inputs->keys, "input.0") != inputs->keys.end());
    const auto tangent = std::ranges::find(inputs->keys, "tangent.0") - inputs->keys.begin();
    QCOMPARE(elements(inputs->values.at(static_cast<std::size_t>(tangent))), std::vector<double>{1});  // of the loss
    const auto outputs = interpret(*made->joint, inputs->values);
    QVERIFY2(outputs, outputs ? "" : outputs.error().line().c_str());
    QVERIFY(compare_values("loss", Value(*io->find("output.0")), outputs->at(0), {}, false).ok());
    TensorFile more = *io;
    more.tensors["tangent.0"] = f32({}, {3});
    const auto given = gather_inputs(*made->joint, &joint, more, std::nullopt);
    QVERIFY2(given, given ? "" : given.error().line().c_str());
    QCOMPARE(elements(given->values.at(static_cast<std::size_t>(tangent))), std::vector<double>{3});
  }

  void joint_graphs_of_the_corpus_take_their_archives_inputs() {
    if (corpus().empty()) QSKIP(no_corpus);
    // Buffers that are written, symbolic sizes, sparse inputs, several layers of one weight.
    for (const char* name : {"resnet", "gpt2_dyn", "dlrm", "lstm"}) {
      const auto folder = corpus() / "models" / name;
      const auto loaded = load((folder / "program.pt2").string());
      QVERIFY2(loaded, loaded ? "" : loaded.error().line().c_str());
      const ExportedProgram& program = *loaded->artefacts[0].program;
      const auto graph = loaded->artefacts[0].graph();
      const auto made = aot(**graph, &program, {});
      QVERIFY2(made, made ? "" : made.error().line().c_str());
      const ExportedProgram joint = program_of_joint(**graph, program, *made);
      const auto io = read_safetensors((folder / "io.safetensors").string());
      const auto inputs = gather_inputs(*made->joint, &joint, *io, std::nullopt);
      QVERIFY2(inputs, inputs ? name : inputs.error().line().c_str());
      for (std::size_t i = 0; i < inputs->keys.size(); ++i)
        if (const Tensor* stored = io->find(inputs->keys[i]))
          QCOMPARE(elements(inputs->values[i]), elements(Value(*stored)));
    }
  }

  void random_inputs_fit_the_given_ones() {
    const auto graph = dynamic();
    TensorFile io;
    io.tensors["input.0"] = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    const auto inputs = gather_inputs(*graph, nullptr, io, 7);
    QVERIFY2(inputs, inputs ? "" : inputs.error().line().c_str());
    QCOMPARE(inputs->values[3].get<Tensor>()->sizes, (Sizes{3}));
  }

  // Its schema does not say that it writes the statistics.
  void norms_write_inputs() {
    const auto norm = [](const char* training) {
      return fx("x: <f32[2, 2][2, 1]>, m: <f32[2][1]>, v: <f32[2][1]>",
                std::string("a: <f32[2, 2][2, 1]> = $batch_norm(x, None, None, m, v, ") + training +
                    ", 0.1, 1e-05, False)\nreturn (a,)");
    };
    QVERIFY(mutates_inputs(*norm("True")));
    QVERIFY(!mutates_inputs(*norm("False")));
  }

  void sizes_that_disagree_are_reported() {
    const auto graph = dynamic();
    TensorFile io;
    io.tensors["input.0"] = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    io.tensors["input.1"] = f32({2}, {10, 20});
    const auto inputs = gather_inputs(*graph, nullptr, io, std::nullopt);
    QVERIFY(!inputs);
    QCOMPARE(inputs.error().code, std::string("interp.symbols"));
    QCOMPARE(inputs.error().where.node, std::string("y"));
  }

  void numbers_are_results() {
    const std::vector<Value> results{std::int64_t{3}, 2.5, true, Value()};
    const auto out = collect_outputs(nullptr, {}, {}, results);
    QVERIFY(out);
    const std::pair<const char*, DType> expected[] = {
        {"output.0", DType::Int64}, {"output.1", DType::Float64}, {"output.2", DType::Bool}};
    QCOMPARE(out->tensors.size(), std::size(expected));
    for (const auto& [key, dtype] : expected) {
      QVERIFY2(out->find(key), key);
      QVERIFY2(out->find(key)->dtype == dtype, key);
    }
    QVERIFY(out->find("output.2")->as<StoredBool>()[0]);
  }
};

QTEST_GUILESS_MAIN(TestGraphIo)
#include "test_graph_io.moc"
