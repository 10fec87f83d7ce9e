// Graphs in a real PyTorch, of the Python that $PARTITA_TEST_PYTHON names (.ci/run makes one): the same results as the
// interpreter's, and each failure of PyTorch as one error.
#include <QtTest>

#include "codegen/backends.h"
#include "core/base/whereabouts.h"
#include "core/compare/per_node.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

BackendOptions options_with(const std::shared_ptr<Generator>& generator = nullptr) {
  BackendOptions options;
  options.config.python = qEnvironmentVariable("PARTITA_TEST_PYTHON").toStdString();
  options.generator = generator;
  return options;
}

Result<std::vector<Value>> run(const char* name, const Graph& graph, std::vector<Value> inputs,
                               const BackendOptions& options) {
  TRY(const Backend* backend, find_backend(name));
  TRY(const CompiledFn call, backend->make(options)(graph));
  return call(std::move(inputs));
}

/// Results and what became of the inputs, as text.
QString text_of(const char* name, const Graph& graph, const std::vector<Value>& inputs) {
  auto own = copy_values(inputs);
  if (!own) return "no copies";
  const std::vector<Value> given = *own;
  const auto found = run(name, graph, *std::move(own), options_with(std::make_shared<Generator>(7)));
  if (!found) return QString::fromStdString(found.error().code + " " + found.error().message);
  QString text;
  for (const std::vector<Value>* values : {&*found, &given})
    for (const Value& v : *values) {
      for (const double x : elements(v)) text += QString(" %1").arg(x, 0, 'g', 5);
      if (const auto* t = v.get<Tensor>())
        for (const std::int64_t s : t->strides) text += QString(" /%1").arg(s);
      text += ";";
    }
  return text;
}

struct Row {
  const char* name;
  const char* parameters;
  const char* lines;
  std::vector<Value> inputs;
};

const Tensor base = f32({4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"several results",
       "x: <f32[2, 2][2, 1]>",
       "a: <f32[2, 2][2, 1]> = $sin(x)\nreturn (a, None, 3)",
       {f32({2, 2}, {1, 2, 3, 4})}},
      {"a strided input",
       "x: <f32[3, 4][1, 3]>",
       "a: <f32[3, 4][1, 3]> = $exp(x)\nb: <f32[3][1]> = $sum.dim_IntList(a, [1])\nreturn (b,)",
       {base.view_as({3, 4}, {1, 3}, 0)}},
      {"inputs that share memory",
       "x: <f32[3][1]>, y: <f32[3][1]>",
       "a: <f32[3][1]> = $add.Tensor(x, y)\nreturn (a,)",
       {base.view_as({3}, {1}, 0), base.view_as({3}, {1}, 6)}},
      {"an input is written",
       "x: <f32[3][1]>",
       "a: <f32[3][1]> = $mul.Tensor(x, 2.0)\nc = $copy_(x, a)\nreturn (a,)",
       {f32({3}, {1, 2, 3})}},
      {"nothing in it", "x: <f32[0, 3][3, 1]>", "a: <f32[0, 3][3, 1]> = $neg(x)\nreturn (a,)", {f32({0, 3}, {})}},
      {"sizes that are symbols",
       "x: <f32[s0][1]>, n: \"Sym(s0)\"",
       "a: <f32[s0][1]> = $add.Tensor(x, n)\nreturn (a, n)",
       {f32({3}, {1, 2, 3}), std::int64_t{3}}},
      {"random numbers",
       "x: <f32[8][1]>",
       "a: <f32[8][1]> = $rand_like(x)\nreturn (a,)",
       {f32({8}, std::vector<double>(8))}},
      {"what JSON lacks",
       "x: <f32[2][1]>",
       "a: <f32[2][1]> = $clamp_min(x, -inf)\nb: <f32[2][1]> = $nan_to_num(a, inf)\nreturn (b,)",
       {f32({2}, {1, -2})}},
  };
  return all;
}

}  // namespace

class TestTorchColumns : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    if (qEnvironmentVariableIsEmpty("PARTITA_TEST_PYTHON")) QSKIP("$PARTITA_TEST_PYTHON names no Python with PyTorch");
  }

  void results_are_the_interpreters_data() {
    QTest::addColumn<int>("index");
    QTest::addColumn<QByteArray>("backend");
    for (std::size_t i = 0; i < rows().size(); ++i)
      for (const char* backend : {"torch:eager", "torch:aot_eager", "torch:inductor"})
        QTest::addRow("%s, %s", rows()[i].name, backend) << static_cast<int>(i) << QByteArray(backend);
  }
  void results_are_the_interpreters() {
    QFETCH(int, index);
    QFETCH(QByteArray, backend);
    const Row& row = rows()[static_cast<std::size_t>(index)];
    const auto graph = fx(row.parameters, row.lines);
    const QString expected = text_of("interp", *graph, row.inputs);
    QVERIFY(expected.contains(";"));
    QCOMPARE(text_of(backend, *graph, row.inputs), expected);
  }

  void functions_and_methods_of_dynamo() {
    const auto graph = fx("L_x_: <f32[2, 3][3, 1]>",
                          "a = torch._C._nn.gelu(L_x_)\np = torch._C._nn.pad(a, (1, 0), 'constant', 0.5)\n"
                          "b = p.sum(dim=1)\nc = operator.add(b, 1)\nd = torch._foreach_add([c], [b])\n"
                          "e = d[0]\nreturn (c, e)");
    const std::vector<Value> inputs = {f32({2, 3}, {1, 2, 3, -1, -2, -3})};
    const QString expected = text_of("interp", *graph, inputs);
    QVERIFY(expected.contains(";"));
    for (const char* backend : {"torch:eager", "torch:inductor"}) QCOMPARE(text_of(backend, *graph, inputs), expected);
  }

  /// Nothing that a file names is called but functions of tensors.
  void hostile_graphs_are_refused_data() {
    QTest::addColumn<QString>("line");
    const auto row = [](const char* line) { QTest::newRow(line) << line; };
    row("a = os.system('touch /tmp/partita_was_here')");
    row("a = builtins.eval('1')");
    row("a = builtins.getattr(x, '__class__')");
    row("a = torch.load('/tmp/x')");
    row("a = torch.hub.load('x', 'y')");
    row("a = torch.ops.load_library('/tmp/x.so')");
    row("a = torch.ops.aten.from_file.default('/tmp/x')");
    row("a = operator.methodcaller('x')");
    row("a = x.numpy()");
    row("a = x.__reduce_ex__(2)");
    row("a = x.apply_(x)");
    row("a = torch.ops.aten.no_such_thing.default(x)");
    row("a = torch.ops.mylib.custom.default(x)");
  }
  void hostile_graphs_are_refused() {
    QFETCH(QString, line);
    const auto graph = fx("x: <f32[2][1]>", line.toStdString() + "\nreturn (a,)");
    for (const char* backend : {"torch:eager", "torch:inductor"}) {
      const auto found = run(backend, *graph, {f32({2}, {1, 2})}, options_with());
      QVERIFY(!found);
      QCOMPARE(found.error().code, std::string("torch.refused"));
      QCOMPARE(found.error().exit_code(), 3);
    }
    QVERIFY(!QFile::exists("/tmp/partita_was_here"));
  }

  void names_do_not_reach_the_text_that_fx_runs() {
    const auto graph = fx("x: <f32[2][1]>", "a: <f32[2][1]> = $neg(x)\nreturn (a,)");
    graph->placeholders()[0]->target = "x=print('no')):\n  import os #";
    for (Node* node : *graph)
      if (node->is(Op::torch("aten.neg.default"))) graph->rename(node, "a; import os; b");
    graph->attributes["k\"); import os; (\""] = f32({1}, {1});
    for (const char* backend : {"torch:eager", "torch:aot_eager", "torch:inductor"}) {
      const auto found = run(backend, *graph, {f32({2}, {1, 2})}, options_with());
      QVERIFY2(bool(found), found ? "" : found.error().message.c_str());
      QCOMPARE(elements((*found)[0]), (std::vector<double>{-1, -2}));
    }
  }

  void failures_are_errors_with_a_place() {
    const auto wrong = fx("x: <f32[2][1]>", "a: <f32[2][1]> = $neg(x)\nb = $mm(a, a)\nreturn (b,)");
    const auto thrown = run("torch:eager", *wrong, {f32({2}, {1, 2})}, options_with());
    QVERIFY(!thrown);
    QVERIFY(thrown.error().code.starts_with("torch.exception."));
    QCOMPARE(thrown.error().where.node, std::string("b"));
    const auto large = fx("x: <f32[2][1]>", "a = $zeros([8589934592])\nreturn (a,)");
    BackendOptions little = options_with();
    little.config.python_memory = std::size_t{1} << 30;
    const auto died = run("torch:eager", *large, {f32({2}, {1, 2})}, little);
    QVERIFY(!died && is_death(died.error()));
    QVERIFY2(died.error().message.find("out of memory") != std::string::npos, died.error().message.c_str());
  }

  void operators_of_the_users_module() {
    qputenv("PYTHONPATH", PARTITA_SOURCE_DIR "/tests/codegen/python");
    const auto graph = fx("x: <f32[4][1]>",
                          "a = torch.ops.partita_test.twice.default(x)\nb = torch.ops.partita_test.halves.default(a)\n"
                          "c = operator.getitem(b, 1)\nd = $neg(c)\nreturn (d,)");
    const std::vector<Value> inputs = {f32({4}, {1, 2, 3, 4})};
    BackendOptions options = options_with();
    for (const char* backend : {"interp", "f64", "torch:eager"}) {
      options.config.python_import = {};
      const auto refused = run(backend, *graph, inputs, options);
      QVERIFY2(!refused && refused.error().exit_code() == 3, backend);
      options.config.python_import = {"partita_test_operators"};
      const auto found = run(backend, *graph, inputs, options);
      QVERIFY2(bool(found), found ? "" : found.error().message.c_str());
      QCOMPARE(elements((*found)[0]), (std::vector<double>{-6, -8}));
    }
    options.config.python_import = {"no_such_module"};
    const auto none = run("torch:eager", *graph, inputs, options);
    QVERIFY(!none);
    QCOMPARE(none.error().code, std::string("torch.start"));
  }

  /// Inductor alone would compute with what it has written already.
  void writes_to_inputs_that_share_memory() {
    const auto graph =
        fx("x: <f32[3][1]>, y: <f32[3][1]>", "a: <f32[3][1]> = $mul.Tensor(x, 2.0)\nc = $copy_(x, a)\nreturn (a,)");
    const std::vector<Value> inputs = {base.view_as({3}, {1}, 0), base.view_as({3}, {1}, 1)};
    QCOMPARE(text_of("torch:eager", *graph, inputs), text_of("interp", *graph, inputs));
    const QString refused = text_of("torch:inductor", *graph, inputs);
    QVERIFY2(refused.startsWith("torch.refused") && refused.contains("share memory"), qPrintable(refused));
    // An input whose own elements do, and one whose rows only lie between one another.
    const std::vector<Value> narrow = {base.view_as({3}, {0}, 0), base.view_as({3}, {1}, 6)};
    QVERIFY(text_of("torch:inductor", *graph, narrow).contains("share memory"));
    const auto two =
        fx("x: <f32[3, 2][2, 3]>", "a: <f32[3, 2][2, 1]> = $mul.Tensor(x, 2.0)\nc = $copy_(x, a)\nreturn (a,)");
    const std::vector<Value> woven = {base.view_as({3, 2}, {2, 3}, 0)};
    QCOMPARE(text_of("torch:inductor", *two, woven).section(';', 1),
             text_of("torch:eager", *two, woven).section(';', 1));
  }

  void times_of_its_stages_come_back() {
    const auto graph = fx("x: <f32[2][1]>", "a: <f32[2][1]> = $neg(x)\nreturn (a,)");
    BackendOptions options = options_with();
    options.times = std::make_shared<StageTimes>();
    QVERIFY(bool(run("torch:inductor", *graph, {f32({2}, {1, 2})}, options)));
    std::vector<std::string> stages;
    for (const auto& [stage, milliseconds] : options.times->all()) stages.push_back(stage);
    for (const char* stage : {"torch build", "torch trace", "torch compile", "torch run"})
      QVERIFY2(std::ranges::find(stages, stage) != stages.end(), stage);
  }

  void inductor_takes_its_options() {
    const auto graph = fx("x: <f32[2][1]>", "a: <f32[2][1]> = $neg(x)\nreturn (a,)");
    QVERIFY(bool(run("torch:inductor+max_fusion_size=1", *graph, {f32({2}, {1, 2})}, options_with())));
    const auto unknown = run("torch:inductor+no_such_option=1", *graph, {f32({2}, {1, 2})}, options_with());
    QVERIFY(!unknown);
    QCOMPARE(unknown.error().code, std::string("torch.refused"));
    const auto backend = run("torch:no_such_backend", *graph, {f32({2}, {1, 2})}, options_with());
    QVERIFY(!backend);
    QCOMPARE(backend.error().code, std::string("torch.refused"));
  }
};

QTEST_APPLESS_MAIN(TestTorchColumns)
#include "test_torch_columns.moc"
