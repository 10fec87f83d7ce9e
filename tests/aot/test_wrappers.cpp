// The layers around compiled code: what each does for a graph, what it does in a run, and that they can be read again.
#include <QtTest>

#include <nlohmann/json.hpp>

#include "core/aot/metadata_json.h"
#include "core/aot/run_program.h"
#include "core/aot/wrapper.h"
#include "core/base/config.h"
#include "core/base/memory.h"
#include "core/interp/interpreter.h"
#include "tests/support/fx.h"
#include "tests/support/interpreted.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

/// Elements `from`, from + 1, ... of a memory of six.
GraphInputs two_views(std::int64_t from, std::int64_t other) {
  const Tensor whole = f32({6}, {1, 2, 3, 4, 5, 6});
  GraphInputs inputs;
  inputs.values = {whole.view_as({4}, {1}, from), whole.view_as({2}, {1}, other)};
  inputs.keys = {"input.0", "input.1"};
  inputs.memory = {"storage.0", "storage.0"};
  return inputs;
}

std::unique_ptr<Graph> writing() {
  return fx("x: <f32[4][1]>, y: <f32[2][1]>", "a = $mul_.Tensor(x, 2)\nb = $neg(y)\nreturn (b,)");
}

/// The wrappers, written and read again.
Wrappers again(const Wrappers& wrappers) {
  const auto read = read_wrappers(to_json(wrappers).dump());
  if (!read) qFatal("%s", read.error().line().c_str());
  return *read;
}

CompiledFn interpreted(const Graph& graph) {
  return [&graph](std::vector<Value> inputs) { return interpret(graph, std::move(inputs)); };
}

struct Made {
  AotGraphs graphs;
  Wrappers wrappers;
};

/// The graphs for inference, and their wrappers as they are read again.
Made made_of(const Graph& graph, bool keep_input_mutations = false) {
  auto graphs = aot(graph, nullptr, {.train = false, .keep_input_mutations = keep_input_mutations});
  if (!graphs) qFatal("%s", graphs.error().line().c_str());
  Wrappers wrappers = again(wrap_graphs(*graphs));
  return {std::move(*graphs), std::move(wrappers)};
}

std::vector<std::string_view> names(const Wrappers& wrappers) {
  std::vector<std::string_view> out;
  for (const Wrapper& w : wrappers) out.push_back(name_of(w));
  return out;
}

using Names = std::vector<std::string_view>;

}  // namespace

class TestWrappers : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void overlapping_inputs_become_views_of_their_memory() {
    const auto graph = writing();
    GraphInputs inputs = two_views(0, 3);
    std::vector<Value> callers = inputs.values;
    const auto outer = wrap_inputs(*graph, inputs, true);
    QVERIFY2(outer, outer ? "" : outer.error().line().c_str());
    QCOMPARE(names(*outer), Names{"AOTSyntheticBaseWrapper"});
    QCOMPARE(graph->placeholders().size(), std::size_t{1});
    QCOMPARE(inputs.keys, std::vector<std::string>{"storage.0"});
    QCOMPARE(inputs.values[0].get<Tensor>()->numel(), 6);
    QCOMPARE(places_of_inputs(*outer, 2), (std::vector<std::size_t>{0, 0}));

    const Made made = made_of(*graph);
    Wrappers all = again(*outer);
    all.insert(all.end(), made.wrappers.begin(), made.wrappers.end());
    QCOMPARE(names(all), (Names{"AOTSyntheticBaseWrapper", "RuntimeWrapper"}));
    const BoxedFn run = post_compile(all, boxed(interpreted(*made.graphs.partition.forward)));
    const Tensor first = *callers[0].get<Tensor>(), second = *callers[1].get<Tensor>();
    const auto outputs = run(callers);
    QVERIFY2(outputs, outputs ? "" : outputs.error().line().c_str());
    QCOMPARE(elements((*outputs)[0]), (std::vector<double>{-8, -5}));
    QCOMPARE(elements(first), (std::vector<double>{2, 4, 6, 8}));
    QVERIFY(callers[0].is_none() && callers[1].is_none());

    std::vector<Value> others = {first, second.view_as({2}, {1}, 4)};
    const auto refused = run(others);
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, std::string("aot.shared"));
  }

  void other_inputs_stay() {
    const auto apart = writing();
    GraphInputs inputs = two_views(0, 4);
    QVERIFY(wrap_inputs(*apart, inputs, true)->empty());
    QCOMPARE(apart->placeholders().size(), std::size_t{2});
    // Nothing is written.
    const auto pure = fx("x: <f32[4][1]>, y: <f32[2][1]>", "a = $mul.Tensor(x, 2)\nb = $neg(y)\nreturn (a, b)");
    inputs = two_views(0, 3);
    QVERIFY(wrap_inputs(*pure, inputs, true)->empty());
    QCOMPARE(pure->placeholders().size(), std::size_t{2});
    const std::vector<Node*> p = pure->placeholders();
    QVERIFY(p[0]->meta.tensor()->storage_id >= 0);
    QCOMPARE(p[0]->meta.tensor()->storage_id, p[1]->meta.tensor()->storage_id);
    QVERIFY(made_of(*pure).wrappers.empty());
  }

  void the_same_tensor_is_one_input() {
    const auto graph = fx("x: <f32[4][1]>, y: <f32[4][1]>", "a = $add.Tensor(x, y)\nreturn (a,)");
    GraphInputs inputs;
    const Tensor x = f32({4}, {1, 2, 3, 4});
    inputs.values = {x, x};
    inputs.keys = {"input.0", "input.1"};
    inputs.memory = {"", "input.0"};
    const auto outer = wrap_inputs(*graph, inputs, false);
    QVERIFY2(outer, outer ? "" : outer.error().line().c_str());
    QCOMPARE(names(*outer), Names{"AOTDedupeWrapper"});
    QCOMPARE(summary((*outer)[0]), std::string("input 1 is input 0"));
    QCOMPARE(graph->placeholders().size(), std::size_t{1});
    std::vector<Value> callers = {x, x};
    const auto outputs = post_compile(again(*outer), boxed(interpreted(*graph)))(callers);
    QVERIFY2(outputs, outputs ? "" : outputs.error().line().c_str());
    QCOMPARE(elements((*outputs)[0]), (std::vector<double>{2, 4, 6, 8}));
  }

  void two_dtypes_in_a_written_memory_are_refused() {
    const auto graph = fx("x: <f32[4][1]>, y: <i32[2][1]>", "a = $mul_.Tensor(x, 2)\nb = $neg(y)\nreturn (b,)");
    GraphInputs inputs = two_views(0, 3);
    Tensor y = *inputs.values[1].get<Tensor>();
    y.dtype = DType::Int32;
    inputs.values[1] = y;
    const auto outer = wrap_inputs(*graph, inputs, true);
    QVERIFY(!outer);
    QCOMPARE(outer.error().code, std::string("aot.shared"));
  }

  /// as_strided of an input shows memory outside of it: the whole memory is passed then.
  void a_place_in_memory_outside_of_its_input_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<QList<double>>("expected");
    QTest::newRow("told") << "a = $as_strided(x, [2], [1], 0)\nreturn (a,)" << QList<double>{1, 2};
    QTest::newRow("in torch") << "a = torch.as_strided(x, (2,), (1,), 0)\nreturn (a,)" << QList<double>{1, 2};
    QTest::newRow("a method") << "a = x.as_strided((2,), (1,), storage_offset = 0)\nreturn (a,)" << QList<double>{1, 2};
    QTest::newRow("reached") << "s = $slice.Tensor(x, 0, 1, 3)\na = $as_strided(s, [3], [1])\nreturn (a,)"
                             << QList<double>{4, 5, 6};
    QTest::newRow("by the input itself") << "a = $as_strided_(x, [2], [3])\nb = $neg(a)\nreturn (b,)"
                                         << QList<double>{-3, -6};
    QTest::newRow("under no_grad")
        << "g = torch._C._set_grad_enabled(False)\ns: <f32[2][1]> = $slice.Tensor(x, 0, 1, 3)\n"
           "a: <f32[3][1]> = $as_strided(s, [3], [1])\nh = torch._C._set_grad_enabled(True)\n"
           "return (a,)"
        << QList<double>{4, 5, 6};
    QTest::newRow("written") << "a = $as_strided(x, [2], [3])\nb = $neg_(a)\nreturn (b,)" << QList<double>{-3, -6};
  }
  void a_place_in_memory_outside_of_its_input() {
    QFETCH(QString, lines);
    QFETCH(QList<double>, expected);
    const auto graph = fx("x: <f32[3][1]>, y: <f32[2][1]>", lines.toStdString());
    GraphInputs inputs = two_views(2, 0);
    inputs.values[0] = inputs.values[0].get<Tensor>()->view_as({3}, {1}, 2);
    std::vector<Value> callers = inputs.values;
    const Tensor memory = callers[0].get<Tensor>()->view_as({6}, {1}, 0);
    const auto outer = wrap_inputs(*graph, inputs, true);
    QVERIFY2(outer, outer ? "" : outer.error().line().c_str());
    QCOMPARE(names(*outer), Names{"AOTSyntheticBaseWrapper"});
    const Made made = made_of(*graph);
    Wrappers all = again(*outer);
    all.insert(all.end(), made.wrappers.begin(), made.wrappers.end());
    const auto out = post_compile(all, boxed(interpreted(*made.graphs.partition.forward)))(callers);
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    QCOMPARE(elements((*out)[0]), std::vector<double>(expected.begin(), expected.end()));
    const bool written = lines.contains("neg_");
    QCOMPARE(elements(Value(memory)),
             (written ? std::vector<double>{1, 2, -3, 4, 5, -6} : std::vector<double>{1, 2, 3, 4, 5, 6}));
  }

  /// A view at a symbolic offset of an input that is written and transposed, made again from JSON.
  void the_epilogue_writes_and_views() {
    const auto graph = fx("s: \"Sym(s0)\", x: <f32[3, 2][2, 1]>, y: <f32[s0][1]>",
                          "a = $add_.Tensor(y, 1)\nb = $slice.Tensor(y, 0, s - 1, 9223372036854775807)\n"
                          "t = $t_(x)\nreturn (b,)");
    graph->shapes->set_hint("s0", 5);
    const Made made = made_of(*graph);
    QCOMPARE(names(made.wrappers), (Names{"RuntimeWrapper", "FakifiedOutWrapper"}));
    const Tensor x = f32({3, 2}, {1, 2, 3, 4, 5, 6}), y = f32({4}, {1, 2, 3, 4});
    std::vector<Value> inputs = {std::int64_t{4}, x, y};
    const auto outputs = post_compile(made.wrappers, boxed(interpreted(*made.graphs.partition.forward)))(inputs);
    QVERIFY2(outputs, outputs ? "" : outputs.error().line().c_str());
    QCOMPARE(elements(y), (std::vector<double>{2, 3, 4, 5}));
    const Tensor& view = *(*outputs)[0].get<Tensor>();
    QVERIFY(view.storage == y.storage);
    QCOMPARE(view.offset, 3);
    const Tensor* turned = inputs[1].get<Tensor>();
    QVERIFY(turned && turned->storage == x.storage);
    QCOMPARE(turned->strides, (Sizes{1, 2}));
    QVERIFY(inputs[0].is_none() && inputs[2].is_none());
  }

  /// Every second element of a memory is an input; what is written and returned stays there.
  void views_of_a_written_input_keep_its_gaps_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<QList<qint64>>("sizes");
    QTest::addColumn<QList<double>>("memory");
    const QList<double> doubled = {2, 2, 6, 4, 10, 6};
    QTest::newRow("a view") << "a = $mul_.Tensor(x, 2)\nv = $slice.Tensor(x, 0, 1, 3)\nreturn (v,)" << QList<qint64>{2}
                            << doubled;
    QTest::newRow("a view after squeeze_")
        << "a = $mul_.Tensor(x, 2)\nu = $squeeze_(a)\nv = $unsqueeze(u, 1)\nreturn (v,)" << QList<qint64>{3, 1}
        << doubled;
  }
  void views_of_a_written_input_keep_its_gaps() {
    QFETCH(QString, lines);
    QFETCH(QList<qint64>, sizes);
    QFETCH(QList<double>, memory);
    const auto graph = fx("x: <f32[3][2]>", lines.toStdString());
    const Tensor whole = f32({6}, {1, 2, 3, 4, 5, 6});
    TensorFile io;
    io.tensors["input.0"] = whole.view_as({3}, {2}, 0);
    RunOptions options;
    options.aot.train = false;
    options.forward = compile_to_interpreter;
    const auto out = run_program(artefact_of(*graph), io, options);
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    const Tensor *shown = out->find("output.0"), *after = out->find("input_after.0");
    QVERIFY(shown && after);
    QCOMPARE(shown->sizes, Sizes(sizes.begin(), sizes.end()));
    QCOMPARE(shown->storage, after->storage);
    QCOMPARE(shown->strides.back() == 2 || shown->strides.front() == 2, true);
    const std::vector<double> found = elements(Value(after->view_as({6}, {1}, 0)));
    for (qsizetype i = 0; i < 6; i += 2) QCOMPARE(found[static_cast<std::size_t>(i)], memory[i]);
  }

  /// unsqueeze_ and then a write: the new value does not tell where the input's elements lie, the steps do.
  void a_written_input_keeps_its_gaps_in_other_dimensions() {
    const auto graph = fx("x: <f32[3][2]>", "u = $unsqueeze_(x, 1)\na = $mul_.Tensor(u, 2)\nreturn (a,)");
    TensorFile io;
    io.tensors["input.0"] = f32({6}, {1, 2, 3, 4, 5, 6}).view_as({3}, {2}, 0);
    RunOptions options;
    options.aot.train = false;
    options.forward = compile_to_interpreter;
    const auto out = run_program(artefact_of(*graph), io, options);
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    const Tensor *shown = out->find("output.0"), *after = out->find("input_after.0");
    QVERIFY(shown && after);
    QCOMPARE(after->sizes, (Sizes{3, 1}));
    QCOMPARE(after->strides.front(), 2);
    QCOMPARE(shown->storage, after->storage);
    QCOMPARE(elements(Value(after->view_as({6}, {1}, 0))), (std::vector<double>{2, 2, 6, 4, 10, 6}));
  }

  /// Whether values change does not tell whether they were written.
  void interpreters_return_what_compiled_code_returns_of_written_inputs() {
    const auto graph =
        fx("x: <f32[0][1]>, y: <f32[2][1]>, z: <f32[2][1]>, whole: <f32[3][1]>, part: <f32[2][1]>",
           "a = $add_.Tensor(x, 1)\nv = $view(y, [2])\nb = $mul_.Tensor(v, 1)\nc = $neg(z)\nd = part.mul_(1)\n"
           "return (c,)");
    TensorFile io;
    io.tensors["input.0"] = f32({0}, {});
    for (const char* key : {"input.1", "input.2"}) io.tensors[key] = f32({2}, {1, 2});
    io.tensors["input.3"] = f32({3}, {1, 2, 3});
    io.tensors["input.4"] = io.tensors["input.3"].view_as({2}, {1}, 1);
    RunOptions options;
    options.aot.train = false;
    options.forward = compile_to_interpreter;
    const auto compiled = run_program(artefact_of(*graph), io, options);
    const auto interpreted = run_as_it_is(artefact_of(*graph), io, {}, compile_to_interpreter);
    QVERIFY(compiled && interpreted);
    const auto keys = std::views::keys(compiled->tensors);
    QCOMPARE(
        std::vector<std::string>(keys.begin(), keys.end()),
        (std::vector<std::string>{"input_after.0", "input_after.1", "input_after.3", "input_after.4", "output.0"}));
    QVERIFY(std::ranges::equal(keys, std::views::keys(interpreted->tensors)));
  }

  void an_output_may_not_show_what_a_written_input_hides() {
    const auto graph = fx("x: <f32[3][1]>",
                          "a = $mul_.Tensor(x, 2)\nv = $slice.Tensor(x, 0, 1, 3)\nr = $resize_(x, [2])\nreturn (v,)");
    const auto out = aot(*graph, nullptr, {.train = false});
    QVERIFY(!out);
    QCOMPARE(out.error().code, std::string("aot.metadata"));
  }

  void set_gives_an_input_other_memory_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<QList<double>>("x");  // afterwards
    QTest::addColumn<QList<double>>("y");
    QTest::addColumn<QList<double>>("out");
    QTest::addColumn<bool>("shared");  // does x then lie in y's memory?
    using L = QList<double>;
    QTest::newRow("of a result") << "m = $mul.Tensor(y, 2)\ns = $set_.source_Tensor(x, m)\na = $neg(x)\nreturn (a,)"
                                 << L{2, 4, 6} << L{1, 2, 3} << L{-2, -4, -6} << false;
    QTest::newRow("that is returned")
        << "m = $mul.Tensor(y, 2)\ns = $set_.source_Tensor(x, m)\nw = $add_.Tensor(m, 1)\nreturn (x, m)" << L{3, 5, 7}
        << L{1, 2, 3} << L{3, 5, 7} << false;
    QTest::newRow("of an input") << "s = $set_.source_Tensor(x, y)\nw = $add_.Tensor(x, 1)\nreturn (x,)" << L{2, 3, 4}
                                 << L{2, 3, 4} << L{2, 3, 4} << true;
    QTest::newRow("of a view of an input")
        << "v = $slice.Tensor(y, 0, 1, 3)\ns = $set_.source_Tensor(x, v)\nw = $mul_.Tensor(y, 3)\nreturn (s,)"
        << L{6, 9} << L{3, 6, 9} << L{6, 9} << true;
    QTest::newRow("at a place") << "s = $set_.source_Tensor_storage_offset(x, y, 1, [2])\nreturn (x,)" << L{2, 3}
                                << L{1, 2, 3} << L{2, 3} << true;
    QTest::newRow("of nothing") << "s = $set_(x)\na = $neg(y)\nreturn (a,)" << L{} << L{1, 2, 3} << L{-1, -2, -3}
                                << false;
    QTest::newRow("an older view keeps the first")
        << "v = $slice.Tensor(x, 0, 0, 1)\ns = $set_.source_Tensor(x, y)\nreturn (v,)" << L{1, 2, 3} << L{1, 2, 3}
        << L{7} << true;
    QTest::newRow("which is freed") << "m = $mul.Tensor(y, 2)\ns = $set_.source_Tensor(x, m)\na = $neg(x)\n"
                                       "f = torch.ops.inductor.resize_storage_bytes_.default(x, 0)\nreturn (a,)"
                                    << L{7, 8, 9} << L{1, 2, 3} << L{-2, -4, -6} << false;
    QTest::newRow("resized for a copy")
        << "u = torch.ops.inductor.resize_storage_bytes_.default(x, 12)\nc = $copy_(x, y)\na = $neg(x)\nreturn (a,)"
        << L{1, 2, 3} << L{1, 2, 3} << L{-1, -2, -3} << false;
    QTest::newRow("and freed after it")
        << "u = torch.ops.inductor.resize_storage_bytes_.default(x, 12)\nc = $copy_(x, y)\na = $neg(x)\n"
           "f = torch.ops.inductor.resize_storage_bytes_.default(x, 0)\nreturn (a,)"
        << L{7, 8, 9} << L{1, 2, 3} << L{-1, -2, -3} << false;
  }

  void set_gives_an_input_other_memory() {
    QFETCH(QString, lines);
    QFETCH(QList<double>, x);
    QFETCH(QList<double>, y);
    QFETCH(QList<double>, out);
    QFETCH(bool, shared);
    const Made made = made_of(*fx("x: <f32[3][1]>, y: <f32[3][1]>", lines.toStdString()));
    std::vector<Value> inputs = {f32({3}, {7, 8, 9}), f32({3}, {1, 2, 3})};
    const std::vector<Value> given = inputs;
    const auto found = post_compile(made.wrappers, boxed(interpreted(*made.graphs.partition.forward)))(inputs);
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    const auto list = [](const Value& v) {
      const std::vector<double> all = elements(v);
      return QList<double>(all.begin(), all.end());
    };
    // A run takes what it does not give back.
    const Value now = inputs[0].is_none() ? given[0] : inputs[0];
    QCOMPARE(list(now), x);
    QCOMPARE(list(given[1]), y);
    QCOMPARE(list((*found)[0]), out);
    QCOMPARE(now.get<Tensor>()->storage == given[1].get<Tensor>()->storage, shared);
  }

  /// set_ under no_grad leaves what a tensor is to autograd: x's gradient is that of what follows, y's of what does not
  /// go through x.
  void set_keeps_gradients() {
    const auto graph =
        fx("x: <f32[2][1]>, y: <f32[2][1]>",
           "m = $mul.Tensor(y, 3)\ng = torch._C._set_grad_enabled(False)\ns = $set_.source_Tensor(x, m)\n"
           "h = torch._C._set_grad_enabled(True)\nq = $mul.Tensor(x, m)\nreturn (q,)");
    const auto out = aot(*graph, nullptr, {.requires_grad = {true, true}});
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    QVERIFY(out->meta.inputs[0].mutates_storage);
    const auto run = interpret(*out->joint, {f32({2}, {7, 8}), f32({2}, {1, 2}), f32({2}, {1, 1})});
    QVERIFY2(run, run ? "" : run.error().line().c_str());
    // q = x * m with x = m = 3 y: the gradients are m, and 3 x.
    QCOMPARE(elements((*run)[run->size() - 2]), (std::vector<double>{3, 6}));
    QCOMPARE(elements(run->back()), (std::vector<double>{9, 18}));
  }

  void a_smaller_size_is_a_view() {
    const auto graph =
        fx("x: <f32[2, 3][3, 1]>", "v = $view(x, [6])\nr = $resize_(v, [2, 2])\na = $mul_.Tensor(r, 2)\nreturn (v,)");
    const Made made = made_of(*graph);
    std::vector<Value> inputs = {f32({2, 3}, {1, 2, 3, 4, 5, 6})};
    const Tensor memory = *inputs[0].get<Tensor>();
    const auto out = post_compile(made.wrappers, boxed(interpreted(*made.graphs.partition.forward)))(inputs);
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    QCOMPARE(elements(Value(memory)), (std::vector<double>{2, 4, 6, 8, 5, 6}));
    QCOMPARE((*out)[0].get<Tensor>()->sizes, (Sizes{2, 2}));
    QCOMPARE((*out)[0].get<Tensor>()->storage, memory.storage);
  }

  /// Whatever the backend returns: here each output has memory of its own.
  void outputs_lie_in_each_others_memory_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<qsizetype>("view");
    QTest::addColumn<QList<qint64>>("strides");
    QTest::newRow("windows") << "a = $sin(x)\nv = $unfold(a, 0, 2, 1)\nreturn (a, v)" << qsizetype{1}
                             << QList<qint64>{1, 1};
    QTest::newRow("the view first") << "a = $sin(x)\nv = $expand(a, [2, 4])\nreturn (v, a)" << qsizetype{0}
                                    << QList<qint64>{0, 1};
    QTest::newRow("written through a view")
        << "a = $sin(x)\nv = $view(a, [2, 2])\nw = $mul_.Tensor(v, 2)\nt = $t(v)\nreturn (a, t)" << qsizetype{1}
        << QList<qint64>{1, 2};
    QTest::newRow("parts of one that is not returned")
        << "a = $sin(x)\nv = $slice.Tensor(a, 0, 0, 3, 2)\nw = $slice.Tensor(a, 0, 1, 4)\nreturn (v, w)" << qsizetype{0}
        << QList<qint64>{2};
    QTest::newRow("of another dtype") << "a = $sin(x)\nv = $view.dtype(a, torch.int32)\nreturn (a, v)" << qsizetype{1}
                                      << QList<qint64>{1};
  }
  void outputs_lie_in_each_others_memory() {
    QFETCH(QString, lines);
    QFETCH(qsizetype, view);
    QFETCH(QList<qint64>, strides);
    const auto graph = fx("x: <f32[4][1]>", lines.toStdString());
    const Made made = made_of(*graph);
    const CompiledFn copies = [&](std::vector<Value> inputs) -> Result<std::vector<Value>> {
      auto values = interpret(*made.graphs.partition.forward, std::move(inputs));
      for (Value& v : *values) v = *v.get<Tensor>()->clone();
      return values;
    };
    std::vector<Value> inputs = {f32({4}, {1, 2, 3, 4})};
    const auto expected = interpret(*graph, inputs);
    const auto found = post_compile(made.wrappers, boxed(copies))(inputs);
    QVERIFY2(found && expected, found ? "" : found.error().line().c_str());
    for (std::size_t i = 0; i < 2; ++i) QCOMPARE(elements((*found)[i]), elements((*expected)[i]));
    const auto at = static_cast<std::size_t>(view);
    QCOMPARE((*found)[0].get<Tensor>()->storage, (*found)[1].get<Tensor>()->storage);
    QCOMPARE((*found)[at].get<Tensor>()->strides, Sizes(strides.begin(), strides.end()));
  }

  /// as_strided of a column of a matrix shows the other column, too.
  void a_view_of_the_storage_is_written_where_it_lies_data() {
    QTest::addColumn<QString>("inputs");
    QTest::addColumn<bool>("refused");
    QTest::newRow("elements of the input") << "x: <f32[2, 3][3, 1]>" << false;
    QTest::newRow("what lies between them") << "x: <f32[2, 2][3, 2]>" << true;
  }
  void a_view_of_the_storage_is_written_where_it_lies() {
    QFETCH(QString, inputs);
    QFETCH(bool, refused);
    const auto graph =
        fx(inputs.toStdString(),
           "s = $select.int(x, 1, 0)\nv = $as_strided(s, [3], [1])\nw = $mul_.Tensor(v, 2)\nreturn (w,)");
    const auto made = aot(*graph, nullptr, {.train = false});
    QCOMPARE(made ? std::string() : made.error().code, std::string(refused ? "functionalize.view" : ""));
    if (refused) return;
    const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    const auto out = interpret(*made->partition.forward, {x});
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    QCOMPARE(elements(out->back()), (std::vector<double>{2, 4, 6}));
    QCOMPARE(elements(made->meta.mutated_in_graph().empty() ? out->front() : Value(x)),
             (std::vector<double>{2, 4, 6, 4, 5, 6}));
  }

  /// tril gives a row-major result, tril_ keeps the strides of what it writes.
  void a_written_value_keeps_its_strides() {
    const auto graph =
        fx("x: <f32[2, 3][3, 1]>", "a = $t(x)\nb = $add.Tensor(a, 1)\nc = $tril_(b)\nd = $neg(c)\nreturn (c, d)");
    const Made made = made_of(*graph);
    std::vector<Value> inputs = {f32({2, 3}, {1, 2, 3, 4, 5, 6})};
    const auto out = post_compile(made.wrappers, boxed(interpreted(*made.graphs.partition.forward)))(inputs);
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    QCOMPARE(elements((*out)[1]), (std::vector<double>{-2, 0, -3, -6, -4, -7}));
    for (const Value& v : *out) QCOMPARE(v.get<Tensor>()->strides, (Sizes{1, 3}));
  }

  void outputs_get_the_strides_that_are_reported() {
    const auto graph = fx("x: <f32[2, 3][3, 1]>", "a = $t(x)\nb = $add.Tensor(a, 1)\nreturn (b,)");
    const Made made = made_of(*graph);
    QCOMPARE(names(made.wrappers), Names{"FakifiedOutWrapper"});
    const CompiledFn row_major = [](const std::vector<Value>&) -> Result<std::vector<Value>> {
      return std::vector<Value>{f32({3, 2}, {1, 2, 3, 4, 5, 6})};
    };
    std::vector<Value> inputs = {f32({2, 3}, {0, 0, 0, 0, 0, 0})};
    const auto outputs = post_compile(made.wrappers, boxed(row_major))(inputs);
    QVERIFY2(outputs, outputs ? "" : outputs.error().line().c_str());
    const Tensor& found = *(*outputs)[0].get<Tensor>();
    QCOMPARE(found.strides, (Sizes{1, 3}));
    QCOMPARE(elements(*found.contiguous()), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  }

  /// What nobody else holds is freed while the boxed function runs.
  void inputs_are_given_back_when_they_are_dead() {
    std::weak_ptr<Storage> memory;
    bool dead = false;
    const CompiledFn drops = [&](std::vector<Value> taken) -> Result<std::vector<Value>> {
      taken.clear();
      dead = memory.expired();
      return std::vector<Value>{f32({2}, {1, 2})};
    };
    RuntimeWrapper epilogue;
    epilogue.aliases.push_back({0, 1, true, std::nullopt});
    epilogue.shapes.inputs.resize(2);
    std::vector<Value> inputs = {f32({2}, {1, 2}), f32({2}, {3, 4})};
    memory = inputs[0].get<Tensor>()->storage;
    QVERIFY(post_compile({epilogue}, boxed(drops))(inputs));
    QVERIFY(dead);
  }

  void a_run_holds_less_when_inputs_are_its_own() {
    const auto graph = fx("x: <f32[1000][1]>", "a = $neg(x)\nb = $exp(a)\nc = $sum(b)\nreturn (c,)");
    const auto peak = [&](bool keep) {
      std::vector<Value> inputs = {*Tensor::zeros(DType::Float32, {1000})}, kept;
      if (keep) kept = inputs;
      const std::size_t before = held_bytes();
      reset_most_held();
      const auto outputs = boxed(interpreted(*graph))(inputs);
      return outputs ? most_held_bytes() - before : 0;
    };
    QVERIFY(peak(false) > 0);
    QVERIFY2(peak(false) + 4000 <= peak(true), qPrintable(QString("%1 and %2").arg(peak(false)).arg(peak(true))));
  }

  void the_backward_is_compiled_when_it_is_needed() {
    const auto graph = fx("x: <f32[2][1]>", "a = $mul.Tensor(x, x)\nb = $sum(a)\nreturn (b,)");
    const Artefact artefact = artefact_of(*graph);
    TensorFile io;
    io.tensors["input.0"] = f32({2}, {3, 4});
    io.tensors["input.0"].requires_grad = true;
    for (const bool lazy : {false, true}) {
      int backwards = 0;
      RunOptions options;
      options.forward = [](const Graph& g) -> Result<CompiledFn> { return interpreted(g); };
      options.backward = [&](const Graph& g) -> Result<CompiledFn> {
        ++backwards;
        return interpreted(g);
      };
      options.lazy_backward = lazy;
      auto function = TrainedFunction::make(artefact, io, options);
      QVERIFY2(function, function ? "" : function.error().line().c_str());
      QCOMPARE(backwards, lazy ? 0 : 1);
      const auto forward = function->step(false);
      QVERIFY(forward && !forward->find("grad.input.0"));
      QCOMPARE(backwards, lazy ? 0 : 1);
      for (int i = 0; i < 2; ++i) {
        const auto both = function->step();
        QVERIFY2(both, both ? "" : both.error().line().c_str());
        QCOMPARE(elements(*both->find("grad.input.0")), (std::vector<double>{6, 8}));
      }
      QCOMPARE(backwards, 1);
      const Wrappers wrappers = again(function->wrappers());
      const auto* dispatch = std::get_if<AutogradDispatchWrapper>(&wrappers.back());
      QVERIFY(dispatch && dispatch->lazy_backward == lazy);
      QCOMPARE(dispatch->tangent_of, std::vector<std::size_t>{0});
    }
  }

  /// Tangents of what x has become are 1, 2, 3.
  void gradients_of_writes_data() {
    QTest::addColumn<QString>("lines");
    QTest::addColumn<QList<double>>("gradient");
    QTest::newRow("a comparison") << "b = torch.ops.aten.gt_.Scalar(x, 1)" << QList<double>{0, 0, 0};
    QTest::newRow("a write that PyTorch has no derivative of")
        << "b = torch.ops.aten.logical_not_.default(x)" << QList<double>{1, 2, 3};
    QTest::newRow("one, and then a write that it has one of")
        << "b = torch.ops.aten.logical_not_.default(x)\n        c = torch.ops.aten.neg_.default(x)"
        << QList<double>{-1, -2, -3};
    const QString off = "o = torch._C._set_grad_enabled(False)\n        ",
                  on = "\n        i = torch._C._set_grad_enabled(True)\n        ";
    QTest::newRow("under no_grad") << off + "b = torch.ops.aten.sin_.default(x)" + on << QList<double>{1, 2, 3};
    QTest::newRow("a view that is first read under no_grad")
        << "v = torch.ops.aten.view.default(x, [3])\n        b = torch.ops.aten.mul_.Tensor(x, 3)\n        " + off +
               "c = torch.ops.aten.sin.default(v)" + on + "d = torch.ops.aten.mul_.Tensor(v, 2)"
        << QList<double>{6, 12, 18};
    QTest::newRow("dimensions dropped under no_grad")
        << off + "s = torch.ops.aten.squeeze_.dims(x, [])" + on + "d = torch.ops.aten.mul_.Tensor(s, 2)"
        << QList<double>{2, 4, 6};
  }
  void gradients_of_writes() {
    QFETCH(QString, lines);
    QFETCH(QList<double>, gradient);
    auto graph = parse_fx_text("class M(torch.nn.Module):\n    def forward(self, x: 'f32[3][1]cpu'):\n        " +
                               lines.toStdString() + "\n        return (x,)\n");
    QVERIFY2(graph, graph ? "" : graph.error().line().c_str());
    TensorFile io;
    io.tensors["input.0"] = f32({3}, {1, 2, 3});
    io.tensors["input.0"].requires_grad = true;
    io.tensors["tangent.input.0"] = f32({3}, {1, 2, 3});
    io.tensors["tangent.0"] = f32({3}, {0, 0, 0});
    RunOptions options;
    options.forward = options.backward = compile_to_interpreter;
    const auto out = run_program(artefact_of(**graph), io, options);
    QVERIFY2(out, out ? "" : out.error().line().c_str());
    const Tensor* found = out->find("grad.input.0");  // none: zero
    QCOMPARE(found ? elements(*found) : std::vector<double>(3), std::vector<double>(gradient.begin(), gradient.end()));
  }

  void an_input_without_gradient_may_not_require_one() {
    std::optional<ConfigScope> patch(std::in_place, *patched_config({{"verify", "true"}}));
    const auto graph = fx("x: <f32[2][1]>, y: <f32[2][1]>", "a = $mul.Tensor(x, y)\nb = $sum(a)\nreturn (b,)");
    const auto graphs = aot(*graph, nullptr, {.requires_grad = {true, false}});
    const auto wrapper = graphs ? DebugAssertWrapper::pre_compile(*graphs) : std::nullopt;
    patch.reset();
    QVERIFY(wrapper);
    const CompiledFn nothing = [](const std::vector<Value>&) -> Result<std::vector<Value>> {
      return std::vector<Value>();
    };
    const BoxedFn run = post_compile(again({*wrapper}), boxed(nothing));
    Tensor x = f32({2}, {1, 2}), y = f32({2}, {1, 2});
    x.requires_grad = true;
    std::vector<Value> inputs = {x, y};
    QVERIFY(run(inputs));
    y.requires_grad = true;
    inputs = {x, y};
    const auto refused = run(inputs);
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, std::string("aot.debug_assert"));
  }

  /// As PyTorch's ViewAndMutationMeta has it: a buffer written under no_grad stays in the joint graph, after the
  /// backward; an input that autograd sees written is cloned, because its memory is written before the backward runs.
  void metadata_of_a_training_graph() {
    const auto graph = fx("x: <f32[2][1]>, n: <f32[2][1]>, w: <f32[2][1]>",
                          "a = $mul_.Tensor(x, w)\nb = $add_.Tensor(n, 1)\nc = $mul.Tensor(a, a)\n"
                          "u = $unbind.int(w)\nv = u[0]\nreturn (c, v)");
    const auto graphs = aot(*graph, nullptr, {.requires_grad = {true, false, true}, .passes = false});
    QVERIFY2(graphs, graphs ? "" : graphs.error().line().c_str());
    const nlohmann::ordered_json meta = metadata_json(*graphs);
    const auto& inputs = meta["input_info"];
    QCOMPARE(inputs[0]["mutation_type"].get<std::string>(), std::string("MUTATED_OUT_GRAPH"));
    QVERIFY(!inputs[0]["is_leaf"].get<bool>());
    QCOMPARE(inputs[1]["mutation_type"].get<std::string>(), std::string("MUTATED_IN_GRAPH"));
    QVERIFY(inputs[2]["is_leaf"].get<bool>());
    QVERIFY(!inputs[1]["mutates_storage_metadata"].get<bool>());
    QCOMPARE(inputs[1]["keep_input_mutations"], meta["keep_input_mutations"]);
    QCOMPARE(meta["mutated_inp_runtime_indices"].dump(), std::string("[0]"));
    QCOMPARE(meta["mutated_graph_handled_indices"].dump(), std::string("[1]"));
    QCOMPARE(meta["output_info"][1]["base_idx"].dump(), std::string("2"));
    QCOMPARE(meta["num_forward"].get<int>(), 3);
    QCOMPARE(meta["traced_tangents_descs"][0].get<std::string>(),
             std::string("TangentAOTInput(output=InputMutationAOTOutput(mutated_input=PlainAOTInput(idx=0)))"));
    const Node* last = graphs->joint->output()->previous();
    QCOMPARE(last->op()->name, std::string("aten.copy_.default"));
    QCOMPARE(last->args()[0].node(), graphs->joint->placeholders()[1]);
    const Node* first = graphs->joint->placeholders()[0];
    QCOMPARE((*first->users().begin())->op()->name, std::string("aten.clone.default"));
  }

  void only_lists_of_wrappers_are_read() {
    for (const char* text : {"{", "{}", "[{}]", "[{\"name\": \"OtherWrapper\"}]", "[{\"name\": \"AOTDedupeWrapper\"}]",
                             "[{\"name\": \"FakifiedOutWrapper\", \"outputs\": [{\"output\": 0, \"strides\": "
                             "[\"2*(\"]}], \"shapes\": []}]"}) {
      const auto read = read_wrappers(text);
      QVERIFY2(!read, text);
      QCOMPARE(read.error().code, std::string("aot.wrappers"));
    }
  }
};

QTEST_GUILESS_MAIN(TestWrappers)
#include "test_wrappers.moc"
